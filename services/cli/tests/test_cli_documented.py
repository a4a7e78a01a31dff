"""What docs/policy.md shows is what people paste: each YAML in it is read, and the table is the one that comes out."""

import re
from pathlib import Path

import pytest
import yaml

from fairlead_cli.paper.lines import as_lines
from fairlead_cli.paper.reading import parse
from fairlead_cli.paper.running import order
from fairlead_contracts.policyfile.read import read_document

GUIDE = (Path(__file__).parents[3] / "docs" / "policy.md").read_text()
SHOWN = re.findall(r"^```yaml\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)
AROUND = {
    "now": 1_795_262_400,
    "pools": [{"name": "gpu", "capacity": {"cpu": 128, "memory": "256Gi", "nvidia.com/gpu": 2}}],
    "tenants": [{"name": "team-a"}, {"name": "team-b"}],
}
"""What a shown part of a snapshot stands in."""
OF_A_SNAPSHOT = ("now", "nodes", "queues")


def test_the_guide_shows_policies_and_snapshots() -> None:
    kinds = [any(key in yaml.safe_load(text) for key in OF_A_SNAPSHOT) for text in SHOWN]
    assert kinds.count(True) >= 3
    assert kinds.count(False) >= 2


@pytest.mark.parametrize("text", SHOWN, ids=lambda text: text.split("\n")[0].split("#")[0].strip())
def test_a_shown_file_is_read(text: str) -> None:
    shown = yaml.safe_load(text)
    if not any(key in shown for key in OF_A_SNAPSHOT):
        # The configuration of an older controller says nothing of tenants.
        assert bool(read_document(shown).tenants) == (shown.get("kind") != "ConfigMap")
        return
    whole = yaml.safe_dump({**AROUND, **shown}).encode()
    pools = order(parse(whole, name="policy.md", is_yaml=True), levels="queues" in shown)
    assert sum(len(one.pool.places) for one in pools) == len(shown.get("jobs", ()))


def test_the_shown_table_comes_from_the_shown_snapshot() -> None:
    [text] = [text for text in SHOWN if text.startswith("now:")]
    [table] = re.findall(r"^    \$ fairlead order now.yaml\n((?:    .+\n)+)", GUIDE, re.MULTILINE)
    snapshot = parse(text.encode(), name="now.yaml", is_yaml=True)
    printed = [line for line in as_lines(order(snapshot, levels=False), snapshot) if line]
    assert [line.removeprefix("    ") for line in table.splitlines()] == printed
