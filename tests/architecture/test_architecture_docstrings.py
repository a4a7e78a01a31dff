"""A docstring begins with a noun or a verb and names its subject: whoever reads one alone knows what it is about."""

import ast
import re
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
        "because",
        "before",
        "behind",
        "beside",
        "between",
        "beyond",
        "both",
        "by",
        "either",
        "else",
        "for",
        "from",
        "here",
        "how",
        "if",
        "in",
        "is",
        "it",
        "its",
        "like",
        "likewise",
        "many",
        "nobody",
        "none",
        "not",
        "nothing",
        "of",
        "on",
        "once",
        "only",
        "over",
        "since",
        "so",
        "soon",
        "such",
        "than",
        "that",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "until",
        "up",
        "what",
        "whatever",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "whose",
        "why",
        "with",
        "within",
        "without",
    ]
)
"""Words after which a reader still has to find out what is spoken of."""
HELP = "services/cli/src/fairlead_cli/commands/"
"""Docstrings there are the commands' help, in the words of people who ask."""
LIKE_A_DOCSTRING = re.compile(r"(?:^|[:;])[ \t]*[a-zA-Z]{0,2}[\"']+[\s.,:;`]*(\w+)", re.MULTILINE)
"""First words of texts that begin a statement, and of others."""


def modules() -> list[Path]:
    return sorted(path for top in ("libs", "services") for path in (ROOT / top).glob("*/src/**/*.py"))


def without_subject(text: str) -> Iterator[str]:
    """The first words of each docstring that begins so, with its line: of attributes, too, which have it under them."""
    tree = ast.parse(text)
    for node in (tree, *within(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for line in node.body:
                match line:
                    case ast.Expr(ast.Constant(str(said))) if _first(said) in NO_SUBJECT:
                        yield f"{line.lineno}: {said[:60].splitlines()[0]}"


def _first(said: str) -> str:
    return next(iter(said.split()), "").strip(".,:;`").lower()


def may_lack_a_subject(text: str) -> bool:
    """Whether a module has to be parsed: whether some text that begins a line begins with such a word."""
    return any(word.lower() in NO_SUBJECT for word in LIKE_A_DOCSTRING.findall(text))


def test_a_docstring_names_its_subject() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{one}"
        for path in modules()
        if HELP not in path.as_posix()
        for text in [path.read_text()]
        if may_lack_a_subject(text)
        for one in without_subject(text)
    ]
    assert found == [], "begin with a noun or a verb"


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('"""Of each."""', ["1: Of each."]),
        ('jobs = 1\n"""What waits."""', ["2: What waits."]),
        ('class A:\n    jobs: int\n    """By pool."""', ["3: By pool."]),
        ('class A:\n    """The job."""', []),
        ("def f() -> None: ...", []),
    ],
)
def test_docstrings_without_a_subject_are_found(text: str, lines: list[str]) -> None:
    assert list(without_subject(text)) == lines
    assert may_lack_a_subject(text) or not lines
