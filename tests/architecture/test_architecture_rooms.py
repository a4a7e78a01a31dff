"""What is said of where things live is true: each room and module that a page or a member's docstring names is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
MEMBERS = sorted(path.parent for top in ("libs", "services") for path in ROOT.glob(f"{top}/*/pyproject.toml"))
NAMED = re.compile(r"`((?:[a-z][\w-]*/)*[a-z][\w-]*/?)`")
"""A module or a room, as both are named: `decide/planner`, `hami/`."""
ROOM = re.compile(r"^- `([a-z]\w*)`", re.MULTILINE)
"""A room in the list of a member's docstring."""


def package_of(member: Path) -> Path:
    return member / "src" / f"fairlead_{member.name.replace('-', '_')}"


@cache
def inside(member: Path) -> frozenset[str]:
    """The modules and rooms of a member, by their paths below its package, with a slash in front."""
    paths = [path.relative_to(package_of(member)) for path in package_of(member).rglob("*.py")]
    return frozenset(f"/{path.with_suffix('')}" for path in paths) | {f"/{path.parent}" for path in paths}


def is_known(name: str, members: list[Path]) -> bool:
    """Whether one of these members has a module or a room of that name, wherever in it."""
    return any(path.endswith(f"/{name.rstrip('/')}") for member in members for path in inside(member))


def astray(row: list[str]) -> list[str]:
    """The names of a row that are neither in its members nor, in a clause that names another member before them, in that."""
    own = [member for member in MEMBERS if f"`{member.relative_to(ROOT)}`" in row[2]]
    missing = []
    for clause in row[3].split(";"):
        where = own
        for name in NAMED.findall(clause):
            if ROOT / name in MEMBERS:
                where = [ROOT / name]
            elif not (ROOT / name).is_dir() and not is_known(name, where):
                missing.append(name)
    return missing


def test_the_way_to_each_thing_leads_to_a_module() -> None:
    text = PAGE.read_text()
    table = text[text.index("## Where things live") : text.index("## A job's way")]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| ")]
    assert len(rows) > 30, "the table has moved"
    assert [row for row in rows if len(row) != len(rows[0])] == [], "a row has a member and modules of it"
    assert {row[1].strip(): missing for row in rows if (missing := astray(row))} == {}


@pytest.mark.parametrize("member", MEMBERS, ids=lambda path: path.name)
def test_the_rooms_of_a_docstring_are_there(member: Path) -> None:
    docstring = ast.get_docstring(ast.parse((package_of(member) / "__init__.py").read_text())) or ""
    assert [name for name in ROOM.findall(docstring) if not is_known(name, [member])] == []
