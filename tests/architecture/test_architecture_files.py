"""Rules for every file: sizes, names, and nothing that belongs to one machine."""

import ast
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from fairlead_testkit.source.source_statements import statements

ROOT = Path(__file__).parents[2]
MODULE_LINES = 600
FUNCTION_LINES = 50
# Put together here, so that this file does not break its own rule.
REGISTRIES = re.compile(
    "|".join([r"\bpy" + r"pi\.(?:org|python)", "python" + r"hosted\.org", r"--(?:extra-)?index" + "-url[ =]"])
)
HOMES = re.compile(r"(?<![\w.])/(?:ho" + r"me|Us" + r"ers|ro" + r"ot)/[\w.]{2,}/")
KEYS = re.compile(r"\bS[AOUNCX][A-Z2-7]{56}\b|-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----")
"""Seeds of nkeys, and private keys in PEM."""


@cache
def committed() -> tuple[Path, ...]:
    """Files under version control, and new ones that are not ignored."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],  # noqa: S607 # git, wherever it is
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=50,
    )  # fmt: skip
    return tuple(path for name in listed.stdout.split("\0") if name and (path := ROOT / name).is_file())


def modules() -> list[Path]:
    return [path for path in committed() if path.suffix == ".py"]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    """Yields each function with its number of lines, the docstring not counted."""
    for node in statements(path.read_text()):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            documented = ast.get_docstring(node) is not None
            docstring = node.body[0]
            prose = (docstring.end_lineno or docstring.lineno) - docstring.lineno + 1 if documented else 0
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1 - prose


def test_no_module_is_too_long() -> None:
    sizes = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in modules()}
    assert {name: lines for name, lines in sizes.items() if lines > MODULE_LINES} == {}


def test_no_function_is_too_long() -> None:
    found = {
        f"{path.relative_to(ROOT)}: {name}": lines
        for path in modules()
        for name, lines in functions(path)
        if lines > FUNCTION_LINES
    }
    assert found == {}


def test_every_test_module_has_a_name_of_its_own() -> None:
    names = Counter(path.name for path in modules() if path.name.startswith("test_"))
    assert [name for name, count in names.items() if count > 1] == []


def test_test_modules_are_named_after_their_member() -> None:
    strangers = [
        str(path.relative_to(ROOT))
        for path in modules()
        if path.name.startswith("test_") and path.parent.name == "tests"
        and not path.name.startswith(f"test_{path.parents[1].name.replace('-', '_')}_")
    ]  # fmt: skip
    assert strangers == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = {
        "utils.py",
        "util.py",
        "helpers.py",
        "helper.py",
        "common.py",
        "misc.py",
        "manager.py",
        "base.py",
    }
    assert [str(path.relative_to(ROOT)) for path in modules() if path.name in vague] == []


def test_no_file_names_a_package_registry_or_a_place_on_one_machine() -> None:
    found = []
    for path in committed():
        text = path.read_text(errors="replace")
        marks = [*REGISTRIES.findall(text), *HOMES.findall(text)]
        marks += [str(ROOT)] if f"{ROOT}/" in text else []
        found += [f"{path.relative_to(ROOT)}: {mark}" for mark in marks]
    assert found == []


def test_no_key_is_committed() -> None:
    holders = [path for path in committed() if "tests" not in path.parts]
    assert [
        str(path.relative_to(ROOT)) for path in holders if KEYS.search(path.read_text(errors="replace"))
    ] == []


def test_nothing_that_is_ignored_is_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--ignored", "--exclude-standard"],  # noqa: S607 # git, wherever it is
        cwd=ROOT, capture_output=True, text=True, check=True, timeout=50,
    )  # fmt: skip
    assert listed.stdout.splitlines() == []


def test_every_locked_package_has_hashes() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    entries = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"^\s*#.*\n", "", lock, flags=re.MULTILINE).strip())
    assert [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry] == []


NAMED_TESTS = re.compile(r"`([\w/.-]+\.py)::(\w+)`")


def test_each_claim_of_security_names_a_test_that_exists() -> None:
    lines = (ROOT / "SECURITY.md").read_text().splitlines()
    rows = [
        line for line in lines if line.startswith("|") and not re.match(r"\| (it tries to|whose) \|", line)
    ]
    claims = [line for line in rows if not line.startswith("|---")]
    assert [line for line in claims if not NAMED_TESTS.search(line)] == []
    named = {found for line in lines for found in NAMED_TESTS.findall(line)}
    defined = {
        (file, name)
        for file, _ in named
        if (ROOT / file).is_file()
        for name in re.findall(r"^(?:async )?def (\w+)\(", (ROOT / file).read_text(), re.MULTILINE)
    }
    assert sorted(named - defined) == []
