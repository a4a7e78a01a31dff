"""Every sentence that Fairlead says to people, found in the modules that speak.

A sentence is a text of the code, or an f-string with the names of what it fills in, of several words. Docstrings, names
of metrics and subjects, help of flags (docs/settings.md has it) and logs are none.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[5]

VOICES: dict[str, tuple[str, ...]] = {
    "explain": (
        "libs/policy/src/fairlead_policy/explain/*.py",
        "libs/policy/src/fairlead_policy/fit/unschedulable.py",
        "services/scorer/src/fairlead_scorer/query/*.py",
        "services/scorer/src/fairlead_scorer/state/policy_reader.py",
        "services/scorer/src/fairlead_scorer/state/state_view.py",
        "services/watcher/src/fairlead_watcher/statements/holds.py",
        "services/cli/src/fairlead_cli/client/explained.py",
        "services/cli/src/fairlead_cli/paper/*.py",
    ),
    "queue, tenants, top": (
        "services/cli/src/fairlead_cli/client/words.py",
        "services/cli/src/fairlead_cli/client/marks.py",
        "services/cli/src/fairlead_cli/client/tables.py",
        "services/cli/src/fairlead_cli/client/live.py",
        "libs/policy/src/fairlead_policy/levels/withholding.py",
        "libs/policy/src/fairlead_policy/levels/operators.py",
        "libs/policy/src/fairlead_policy/reserve/*.py",
        "services/admitter/src/fairlead_admitter/decide/*.py",
    ),
    "doctor, watchdog, up": (
        "services/cli/src/fairlead_cli/kueue/**/*.py",
        "services/cli/src/fairlead_cli/findings.py",
        "services/cli/src/fairlead_cli/local/*.py",
        "services/watcher/src/fairlead_watcher/statements/enforcement.py",
    ),
    "slurm": (
        "services/cli/src/fairlead_cli/slurm/*.py",
        "libs/slurm/src/fairlead_slurm/batch/*.py",
    ),
    "refusals of jobs": (
        "libs/contracts/src/fairlead_contracts/messages/submissions.py",
        "libs/contracts/src/fairlead_contracts/base/*.py",
        "services/admitter/src/fairlead_admitter/intake/*.py",
        "services/admitter/src/fairlead_admitter/frontends/kueue/*.py",
        "services/admitter/src/fairlead_admitter/frontends/bus/*.py",
        "services/admitter/src/fairlead_admitter/frontends/*.py",
        "services/cli/src/fairlead_cli/client/submitting/*.py",
    ),
    "Events": ("services/admitter/src/fairlead_admitter/report/*.py",),
    "policy, snapshot, settings": (
        "libs/contracts/src/fairlead_contracts/policyfile/**/*.py",
        "libs/contracts/src/fairlead_contracts/snapshot/*.py",
        "services/cli/src/fairlead_cli/policy/*.py",
        "libs/policy/src/fairlead_policy/rules/*.py",
        "libs/runtime/src/fairlead_runtime/settings.py",
    ),
    "commands": (
        "services/cli/src/fairlead_cli/client/*.py",
        "services/cli/src/fairlead_cli/nats/*.py",
        "services/cli/src/fairlead_cli/commands/*.py",
        "services/cli/src/fairlead_cli/*.py",
    ),
    "demo": (
        "services/cli/src/fairlead_cli/demo/*.py",
        "services/cli/src/fairlead_cli/demo/report/*.py",
    ),
}
_FEWEST_WORDS = 3
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
_FILLED_IN = re.compile(r"\{[^{}]*\}")
_NO_PROSE = re.compile(r"^\S*$|^[<#\[^]|^\{\W|\$\{|^tag:|^%Y|://|^status\.|^\w+ \{ ")
_UNHEARD = (
    "TypeError",
    "AssertionError",
    "RuntimeError",
    "NotImplementedError",
    "cast",
    "Parameter",
)
_UNHEARD_METHODS = (
    *("compile", "gauge", "counter", "histogram", "startswith", "replace", "strftime"),
    *("debug", "info", "warning", "error", "exception"),
)
"""Calls whose texts are for whoever works on the code, or names of metrics and logs with a page of their own."""


class Sentence(NamedTuple):
    """A text that a module says."""

    where: str
    text: str


def by_voice() -> Iterator[tuple[str, list[Sentence]]]:
    """The sentences of each voice, by module; each module speaks with one."""
    seen: set[Path] = set()
    for voice, patterns in VOICES.items():
        paths = sorted({path for pattern in patterns for path in ROOT.glob(pattern)} - seen)
        seen.update(paths)
        yield voice, [sentence for path in paths for sentence in _of_module(path)]


@cache
def our_classes() -> frozenset[str]:
    """The names of all classes of the product."""
    sources = (path for room in ("libs", "services") for path in ROOT.glob(f"{room}/*/src/**/*.py"))
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sources)
    return frozenset(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def _of_module(path: Path) -> Iterator[Sentence]:
    heard = _Heard()
    heard.visit(ast.parse(path.read_text(encoding="utf-8")))
    where = str(path.relative_to(ROOT))
    yield from (Sentence(where, text) for text in dict.fromkeys(heard.texts))


class _Heard(ast.NodeVisitor):
    """Collects the texts of a module."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def visit_Expr(self, node: ast.Expr) -> None:
        """Passes over docstrings: of modules, classes, functions and fields."""
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> None:
        """Passes over annotations, which say nothing to people."""

    def visit_Call(self, node: ast.Call) -> None:
        """Visits the call, unless it is one of those that nobody hears."""
        called = node.func
        if isinstance(called, ast.Attribute):
            unheard = called.attr in _UNHEARD_METHODS
        else:
            unheard = getattr(called, "id", "") in _UNHEARD
        if not unheard:
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        """Visits the argument, unless it says how a text looks."""
        if node.arg != "style":
            self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Takes in a text without fillings."""
        if isinstance(node.value, str):
            self._hear(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Takes in a text with fillings, by their names; what they say themselves is heard, too."""
        parts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                parts.append(f"{{{_named(part.value)}}}")
                self.visit(part.value)
            elif isinstance(part, ast.Constant):
                parts.append(str(part.value))
        self._hear("".join(parts))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visits the value without the annotation."""
        if node.value is not None:
            self.visit(node.value)

    def _hear(self, text: str) -> None:
        told = " ".join(text.split())
        words = _WORD.findall(_FILLED_IN.sub(" ", told))
        if len(words) >= _FEWEST_WORDS and not _NO_PROSE.search(told) and told == told.strip("_"):
            self.texts.append(told)


def _named(node: ast.expr) -> str:
    """The name of what stands there, in one word."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=called):
            return _named(called).strip("_")
        case ast.Subscript(value=value) | ast.Await(value=value):
            return _named(value)
        case _:
            return "…"
