"""Metrics: each that a page names is one that code declares."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if path.name != "words.md")
"""All pages but the list of sentences, which names the modules that they stand in."""
MEMBERS = [path.parent for top in ("libs", "services") for path in ROOT.glob(f"{top}/*/pyproject.toml")]
METRIC = re.compile(r"\bfairlead_[a-z0-9_]+\b")
AFTER = re.compile(r"_(?:total|bucket|count|sum)$")
DECLARING = {"counter", "gauge", "histogram", "family"}
"""Calls by which a metric is declared, of `Metrics` and of what scrapes make."""
LIKE_ONE = re.compile(r"\.of\(|\b(?:counter|gauge|histogram|family)\(")
"""What a module that declares one has in it: only these are parsed."""
NO_METRICS = {"fairlead_gpu"} | {f"fairlead_{member.name.replace('-', '_')}" for member in MEMBERS}
"""A licence of Slurm's in an example, and packages."""


def texts(node: ast.AST) -> Iterator[str]:
    """Yields the texts that an argument may be: one, or one of two."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=one, orelse=other):
            yield from texts(one)
            yield from texts(other)


@cache
def declared() -> frozenset[str]:
    """Names of all metrics without what Prometheus appends: of a service its own, of a library any subsystem's."""
    found: set[str] = set()
    shared: set[str] = set()
    subsystems = {member.name for member in MEMBERS}
    for member in MEMBERS:
        modules = (path.read_text() for path in member.glob("src/**/*.py"))
        for text in filter(LIKE_ONE.search, modules):
            for node in ast.walk(ast.parse(text)):
                if not isinstance(node, ast.Call) or not node.args:
                    continue
                called = (
                    node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                )
                if called == "of":
                    subsystems.update(texts(node.args[0]))
                elif called in DECLARING:
                    names = set(with_unit(called, node))
                    own = f"fairlead_{member.name.replace('-', '_')}_"
                    found.update(own + name for name in names)
                    shared.update(names if member.parent.name == "libs" else ())
    found.update(f"fairlead_{one.replace('-', '_')}_{name}" for one in subsystems for name in shared)
    return frozenset(found)


def with_unit(called: str, node: ast.Call) -> Iterator[str]:
    units = [next(texts(one.value), "") for one in node.keywords if one.arg == "unit"]
    unit = units[0] if units else "seconds" if called == "histogram" else ""
    for name in texts(node.args[0]):
        yield f"{name}_{unit}" if unit else name


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_each_metric_that_a_page_names_is_declared(page: Path) -> None:
    named = set(METRIC.findall(page.read_text())) - NO_METRICS
    assert {name for name in named if AFTER.sub("", name) not in declared()} == set()


def test_pages_name_metrics_at_all() -> None:
    """Some are known by name: a pattern that finds nothing would let everything pass."""
    named = {name for page in PAGES for name in METRIC.findall(page.read_text())} - NO_METRICS
    assert {"fairlead_scorer_dirty_shards", "fairlead_admitter_nats_used_ratio"} <= named
