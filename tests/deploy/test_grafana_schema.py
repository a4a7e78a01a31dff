"""Dashboards are what Grafana's own schema says: read and written by the models that Grafana generates from it.

The models take whatever they are given and pass over what they do not know, so both are looked at: that nothing of a
page is lost on the way, and that each value is of the type that the schema states.
"""

import builtins
import enum
import json
import types
import typing
from collections.abc import Iterator
from pathlib import Path

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

FOLDER = Path(__file__).parents[2] / "deploy" / "monitoring" / "grafana" / "dashboards"
NAMES = sorted(path.name for path in FOLDER.glob("*.json"))

type Json = dict[str, typing.Any]


@pytest.fixture(scope="module", autouse=True)
def panel_kinds() -> None:
    """Options of panels and queries have models of their own."""
    register_default_plugins()


def page(name: str) -> Json:
    found: Json = json.loads((FOLDER / name).read_text())
    return found


def faults(given: Json) -> list[str]:
    """Faults of a page: what the schema does not know of it, and what is not as it says."""
    read = Dashboard.from_json(given)
    return [*lost(given, json.loads(JSONEncoder().encode(read)), ""), *mistyped(read, Dashboard, "")]


def lost(given: object, back: object, where: str) -> Iterator[str]:
    """Values that were given and did not come back."""
    if isinstance(given, dict) and isinstance(back, dict):
        for key, value in given.items():
            yield from lost(value, back.get(key), f"{where}.{key}")
    elif isinstance(given, list) and isinstance(back, list) and len(given) == len(back):
        for number, (value, other) in enumerate(zip(given, back, strict=True)):
            yield from lost(value, other, f"{where}[{number}]")
    elif given != back:
        yield f"{where}: unknown to Grafana's schema"


def mistyped(value: object, wanted: object, where: str) -> Iterator[str]:
    """Places where a value is none of what the schema states."""
    if wanted is typing.Any or wanted is object:
        return
    if isinstance(wanted, type) and typing.get_origin(wanted) is None:
        yield from of_class(value, wanted, where)
    else:
        yield from of_form(value, wanted, where)


def of_form(value: object, wanted: object, where: str) -> Iterator[str]:
    """Faults of unions, lists, maps and literals."""
    arguments = typing.get_args(wanted)
    match typing.get_origin(wanted), value:
        case ((typing.Union | types.UnionType), _):
            yield from min((list(mistyped(value, one, where)) for one in arguments), key=len)
        case builtins.list, list():
            for number, one in enumerate(value):
                yield from mistyped(one, arguments[0], f"{where}[{number}]")
        case builtins.dict, dict():
            for key, one in value.items():
                yield from mistyped(one, arguments[1], f"{where}.{key}")
        case typing.Literal, _ if value in arguments:
            pass
        case _:
            yield f"{where}: {value!r} is no {wanted}"


def of_class(value: object, wanted: type, where: str) -> Iterator[str]:
    """Faults of plain values, enumerations and models."""
    taken = [one.value for one in wanted] if issubclass(wanted, enum.Enum) else None
    numbers = int | float if wanted is float else wanted
    right = value in taken if taken is not None else isinstance(value, numbers)
    if not right or (isinstance(value, bool) and wanted is not bool):
        yield f"{where}: {value!r} is no {wanted.__name__}"
    elif hasattr(wanted, "from_json"):
        for name, kind in typing.get_type_hints(type(value)).items():
            yield from mistyped(getattr(value, name), kind, f"{where}.{name}")


@pytest.mark.parametrize("name", NAMES)
def test_a_dashboard_is_what_grafanas_schema_says(name: str) -> None:
    assert faults(page(name)) == []


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda one: one.update(colour="red"), ".colour: unknown"),
        (lambda one: one.update(refresh=30), ".refresh: 30 is no"),
        (lambda one: one["panels"][0]["fieldConfig"]["defaults"].update(unit=7), ".unit: 7 is no"),
        (lambda one: one["panels"][0]["targets"][0].update(exp="up"), ".exp: unknown"),
        (lambda one: one["panels"][0]["options"].update(legends={}), ".legends: unknown"),
        (lambda one: one["templating"]["list"][1].update(refresh=9), ".refresh: 9 is no"),
        (lambda one: one["panels"][0]["gridPos"].update(w="12"), ".w: '12' is no"),
    ],
)
def test_what_grafana_would_not_know_is_found(break_it: typing.Callable[[Json], None], said: str) -> None:
    broken = page(NAMES[0])
    break_it(broken)
    assert any(said in fault for fault in faults(broken)), faults(broken)
