"""Every service's settings, as an operator meets them."""

import importlib
import importlib.util
from pathlib import Path

import msgspec
import pytest

from fairlead_runtime.settings import ServiceSettings, describe
from fairlead_testkit.source.flag_tables import SERVICES as DOCUMENTED
from fairlead_testkit.source.flag_tables import settings_page

ROOT = Path(__file__).parents[2]
SERVICES = [
    path.parent.name
    for folder in ("libs", "services")
    for path in sorted((ROOT / folder).glob("*/src/*/settings.py"))
]


def kinds(package: str) -> list[type[ServiceSettings]]:
    members = vars(importlib.import_module(f"{package}.settings")).values()
    return [
        found
        for found in members
        if isinstance(found, type)
        and issubclass(found, ServiceSettings)
        and found.__module__.startswith(package)
    ]


@pytest.mark.parametrize("package", SERVICES)
def test_every_setting_is_documented(package: str) -> None:
    for kind in kinds(package):
        assert [setting.name for setting in describe(kind) if not setting.doc] == []


@pytest.mark.parametrize("package", SERVICES)
def test_settings_are_frozen_and_keyword_only(package: str) -> None:
    for kind in kinds(package):
        config = kind.__struct_config__
        assert config.frozen
        assert all(field.name.islower() for field in msgspec.structs.fields(kind))


def test_the_page_of_settings_is_what_the_code_says() -> None:
    written = (ROOT / "docs" / "settings.md").read_text()
    assert written == settings_page(), "a setting changed: `make settings` writes the page anew"


def test_the_page_has_every_service() -> None:
    found = {
        package.removeprefix("fairlead_"): [kind.__name__ for kind in kinds(package)] for package in SERVICES
    }
    services = {name: names for name, names in found.items() if names and name != "runtime"}
    assert services == {name: [kind] for name, kind in DOCUMENTED.items()}
    page = settings_page()
    for package in SERVICES:
        for kind in kinds(package):
            for setting in describe(kind):
                assert f"`{setting.variable() if setting.secret else setting.flag}`" in page
