"""Pages show what people paste: each command exists, docs/policy.md's YAML is read, its table comes out."""

import re
from pathlib import Path

import pytest
import yaml
from cyclopts import CycloptsError

from fairlead_cli.commands import application
from fairlead_cli.paper.arranging import order
from fairlead_cli.paper.lines import as_lines
from fairlead_cli.paper.reading import parse
from fairlead_contracts.policyfile.read import read_document
from fairlead_sim.config import load_cluster

REPOSITORY = Path(__file__).parents[3]
APP = application()
COMMAND = re.compile(r"^(?: {3,7}(?:[$] )?|[$] |)(?:[.]venv/bin/)?fairlead (\S.*)$", re.MULTILINE)
"""A command as it stands in a block of a page; in running text none begins a line."""
GUIDE = (REPOSITORY / "docs" / "policy.md").read_text()
SHOWN = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
AROUND = {
    "now": 1_795_262_400,
    "pools": [{"name": "gpu", "capacity": {"cpu": 128, "memory": "256Gi", "nvidia.com/gpu": 2}}],
    "tenants": [{"name": "team-a"}, {"name": "team-b"}],
}
"""The rest of a snapshot, of which a page shows a part."""
OF_A_SNAPSHOT = ("now", "nodes", "queues")


def test_the_guide_shows_policies_and_snapshots() -> None:
    kinds = [any(key in yaml.safe_load(text) for key in OF_A_SNAPSHOT) for text in SHOWN]
    assert kinds.count(True) >= 3
    assert kinds.count(False) >= 2


@pytest.mark.parametrize("text", SHOWN, ids=lambda text: text.split("\n")[0].split("#")[0].strip())
def test_a_shown_file_is_read(text: str, tmp_path: Path) -> None:
    shown = yaml.safe_load(text)
    if "accounts" in shown:
        path = tmp_path / "cluster.yaml"
        path.write_text(text)
        assert load_cluster(str(path)).pools() == ["gpu"]
        return
    if not any(key in shown for key in OF_A_SNAPSHOT):
        # The configuration of an older controller says nothing of tenants.
        assert bool(read_document(shown).tenants) == (shown.get("kind") != "ConfigMap")
        return
    whole = yaml.safe_dump({**AROUND, **shown}).encode()
    pools = order(parse(whole, name="policy.md", is_yaml=True), levels="queues" in shown)
    assert sum(len(one.pool.positions) for one in pools) == len(shown.get("jobs", ()))


def test_the_shown_table_comes_from_the_shown_snapshot() -> None:
    [text] = [text for text in SHOWN if text.startswith("now:")]
    [table] = re.findall(r"^    \$ fairlead order now.yaml\n((?:    .+\n)+)", GUIDE, re.MULTILINE)
    snapshot = parse(text.encode(), name="now.yaml", is_yaml=True)
    printed = [line for line in as_lines(order(snapshot, levels=False), snapshot) if line]
    assert [line.removeprefix("    ") for line in table.splitlines()] == printed


def shown_commands(page: str) -> set[str]:
    """The commands that a page shows, one by one, without what a shell makes of them."""
    text = (REPOSITORY / page).read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line.partition("  #")[0] for line in COMMAND.findall(text))
    return {re.split(r"[;>|&]|\d>", line)[0].strip() for line in lines}


PAGES = [*sorted(str(page.relative_to(REPOSITORY)) for page in REPOSITORY.glob("docs/*.md")), "README.md"]


@pytest.mark.parametrize("page", [page for page in PAGES if shown_commands(page)])
def test_a_shown_command_is_one(page: str) -> None:
    for command in shown_commands(page):
        if command.split(" ")[-1].startswith("--version"):
            continue
        words = re.sub(r"[$]\(.*?\)|[$]\{?\w+\}?|<[\w-]+>", "x", command)
        try:
            APP.parse_args(words, print_error=False, exit_on_error=False)
        except CycloptsError as wrong:
            pytest.fail(f"{page}: fairlead {command}: {wrong}")


def test_the_pages_show_commands() -> None:
    found = {page: len(shown_commands(page)) for page in PAGES}
    assert found["README.md"] > 20
    assert found["docs/kueue.md"] > 5
