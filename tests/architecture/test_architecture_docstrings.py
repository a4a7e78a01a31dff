"""A docstring begins with a noun or a verb and names its subject: whoever reads one alone knows what it is about."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_testkit.source_statements import within

ROOT = Path(__file__).parents[2]
NO_SUBJECT = frozenset(
    [
        "about",
        "after",
        "again",
        "also",
        "as",
        "at",
        "before",
        "behind",
        "beside",
        "both",
        "by",
        "either",
        "for",
        "from",
        "if",
        "in",
        "is",
        "it",
        "its",
        "like",
        "not",
        "of",
        "on",
        "over",
        "since",
        "so",
        "soon",
        "that",
        "them",
        "these",
        "they",
        "this",
        "those",
        "to",
        "until",
        "up",
        "when",
        "where",
        "while",
        "who",
        "whose",
        "with",
    ]
)
"""Words after which a reader still has to find out what is spoken of."""
HELP = "services/cli/src/fairlead_cli/commands/"
"""Docstrings there are the commands' help, in the words of people who ask."""


def modules() -> list[Path]:
    return sorted(path for top in ("libs", "services") for path in (ROOT / top).glob("*/src/**/*.py"))


def without_subject(text: str) -> Iterator[str]:
    """The first words of each docstring that begins so, with its line."""
    tree = ast.parse(text)
    for node in (tree, *within(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node) or "Nothing"
            if said.split()[0].strip(".,:;`").lower() in NO_SUBJECT:
                yield f"{getattr(node, 'lineno', 1)}: {said[:60]}"


def test_a_docstring_names_its_subject() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{one}"
        for path in modules()
        if HELP not in path.as_posix()
        for one in without_subject(path.read_text())
    ]
    assert found == [], "begin with a noun or a verb"


@pytest.mark.parametrize(
    ("text", "lines"),
    [('"""Of each."""', ["1: Of each."]), ('class A:\n    """The job."""', []), ("def f() -> None: ...", [])],
)
def test_docstrings_without_a_subject_are_found(text: str, lines: list[str]) -> None:
    assert list(without_subject(text)) == lines
