"""A docstring begins with a noun or a verb and names its subject: whoever reads one alone knows what it is about."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from fairlead_testkit.source.source_statements import within

ROOT = Path(__file__).parents[2]
RIDDLES = {
    "`The same` without a noun": re.compile(
        r"The same (?:as|at|by|for|from|in|may|of|on|to|where|with|without)\b"
    ),
    "`The one` without a noun": re.compile(r"The ones? (?:of|that|to|which|who)\b"),
    "`X as Y does`": re.compile(r"\w+ as (?:`[^`]+`|the \w+|\w+) do(?:es)?\b"),
    "a possessive without a noun": re.compile(r"(?:An? |The )?\w+(?:'s|s')[,.:]"),
    "a single word": re.compile(r'\w+\.?(?:$|""")'),
}
"""Beginnings that speak of something that another docstring has named."""
LIKE_A_RIDDLE = re.compile(rf'"""(?:{"|".join(one.pattern for one in RIDDLES.values())})')
"""Texts that begin so, and may be docstrings: only modules with one of them are parsed."""
SEE = re.compile(r"See `(\w+)`\.")
"""Docstrings that are a reference and nothing else, and what they refer to."""
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
    for _, line, said in docstrings(ast.parse(text)):
        if _first(said) in NO_SUBJECT:
            yield f"{line}: {said[:60]}"


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, int, str]]:
    """Yields what each docstring belongs to, with its line and its text in one line: of attributes, too."""
    for node in (tree, *within(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for line in node.body:
                match line:
                    case ast.Expr(ast.Constant(str(said))):
                        yield node, line.lineno, " ".join(said.split())


def riddles(text: str) -> Iterator[str]:
    """The docstrings that begin like one of the `RIDDLES`, with their line."""
    for _, line, said in docstrings(ast.parse(text)):
        for kind, pattern in RIDDLES.items():
            if pattern.match(said):
                yield f"{line}: {said[:60]}: {kind}"


def references(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields the line, the function and the class of each docstring that says `See` alone."""
    for node, line, said in docstrings(ast.parse(text)):
        if seen := SEE.fullmatch(said):
            yield line, getattr(node, "name", ""), seen[1]


def documented_methods(texts: Iterable[str], classes: frozenset[str]) -> set[tuple[str, str]]:
    """The methods of these classes, as (class, method), that say something of their own."""
    heads = re.compile(rf"^class (?:{'|'.join(classes)})\b", re.MULTILINE)
    return {
        (node.name, method.name)
        for text in texts
        if heads.search(text)
        for node in within(ast.parse(text))
        if isinstance(node, ast.ClassDef) and node.name in classes
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        if not SEE.fullmatch(ast.get_docstring(method) or "See `nothing`.")
    }


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


def test_a_docstring_is_read_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{one}"
        for path in modules()
        if HELP not in path.as_posix()
        for text in [path.read_text()]
        if LIKE_A_RIDDLE.search(text)
        for one in riddles(text)
    ]
    assert found == [], "name what it is about"


def test_a_docstring_that_only_refers_leads_to_a_sentence() -> None:
    texts = {path: path.read_text() for path in modules()}
    found = {
        (path.relative_to(ROOT), *one)
        for path, text in texts.items()
        if '"""See `' in text
        for one in references(text)
    }
    known = documented_methods(texts.values(), frozenset(one[3] for one in found))
    assert len(found) > 20, "the pattern has moved"
    assert sorted(one for one in found if (one[3], one[2]) not in known) == []


@pytest.mark.parametrize(
    "said",
    [
        "The same of all jobs.",
        "The one to write.",
        "Looks as `examined` does, at Slurm.",
        "Prepares as the base does.",
        "The tenant's, written out.",
        "An account's.",
        "Itself.",
    ],
)
def test_riddles_are_found(said: str) -> None:
    text = f'def f() -> None:\n    """{said}"""'
    assert len(list(riddles(text))) == 1
    assert LIKE_A_RIDDLE.search(text)


@pytest.mark.parametrize(
    "said", ["The same bytes again.", "The one pool.", "Does as it is told.", "Tenants' weights."]
)
def test_sentences_are_no_riddles(said: str) -> None:
    assert list(riddles(f'jobs = 1\n"""{said}"""')) == []


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
