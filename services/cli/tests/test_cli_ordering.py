"""`fairlead order` on files, and what it prints."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_cli.console import MOST_PROBLEMS
from fairlead_cli.paper.arranging import order
from fairlead_cli.paper.lines import as_lines
from fairlead_cli.paper.reading import parse
from fairlead_cli.paper.results import as_json
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.snapshot.read import read_snapshot
from fairlead_testkit.processes.command import fairlead

GPU = "nvidia.com/gpu"
NOW = 1_760_000_000
SNAPSHOT: dict[str, object] = {
    "now": NOW,
    "policy": {"aging": {"entitlement_per_day": 4.32}, "window": 2},
    "pools": [{"name": "gpu", "capacity": {"cpu": "512", "memory": "4Ti", GPU: 64}}],
    "tenants": [{"name": "team-1", "weight": 2}, {"name": "team-2"}, {"name": "nobody", "weight": 0}],
    "running": [{"id": "r1", "tenant": "team-1", "demand": {GPU: 32}}],
    "jobs": [
        {"id": "late", "tenant": "team-2", "submitted": NOW - 60, "demand": {GPU: 8}},
        {"id": "next", "tenant": "team-2", "submitted": NOW - 30, "demand": {GPU: 128}},
        {"id": "early", "tenant": "team-1", "submitted": NOW - 3600, "demand": {"cpu": "500m"}},
        {"id": "rush", "tenant": "team-1", "class": "urgent", "submitted": NOW, "demand": {"memory": "64Gi"}},
        {"id": "last", "tenant": "nobody", "submitted": NOW - 9999, "demand": {"cpu": 1}, "level": 7},
    ],
}
ORDER = ["rush", "late", "next", "early", "last"]


def test_json_has_the_documented_form() -> None:
    ended = fairlead("order", "-", "-o", "json", given=json.dumps(SNAPSHOT))
    assert ended.returncode == 0, ended.stderr
    [pool] = json.loads(ended.stdout)["pools"]
    assert set(pool) == {"name", "order"}
    assert [job["id"] for job in pool["order"]] == ORDER
    assert [job["rank"] for job in pool["order"]] == [0, 1, 2, 3, 4]
    second = pool["order"][2]
    assert set(second) == {
        *("id", "rank", "tenant", "class", "share", "entitled", "tag", "key", "dominant", "reasons")
    }
    assert (second["tenant"], second["class"], second["dominant"]) == ("team-2", "normal", GPU)
    assert (second["share"], second["entitled"], second["tag"]) == (0.125, 1 / 3, 0.375)
    assert second["key"] == pytest.approx(0.375 + 4.32 * (NOW - 30) / 86_400, rel=1e-15)
    assert any("comes to 8 gpu" in reason for reason in second["reasons"])
    assert any("more than the 64 that the pool has" in reason for reason in second["reasons"])
    assert [pool["order"][-1][key] for key in ("tag", "key", "entitled")] == [None, None, 0], "infinite"


def test_names_are_those_that_every_command_takes() -> None:
    text = json.dumps(SNAPSHOT)
    names = fairlead("order", "-", "-o", "name", given=text).stdout.split()
    assert [name.partition("/")[2] for name in names] == ORDER
    assert names[0] == "team-1/rush"
    assert fairlead("order", "-", "--explain", names[0], "-o", "name", given=text).stdout == f"{names[0]}\n"


def test_levels_come_with_the_writes_that_they_cost(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(SNAPSHOT))
    ended = fairlead("order", str(path), "--levels", "-o", "json")
    [pool] = json.loads(ended.stdout)["pools"]
    levels = {job["id"]: job["level"] for job in pool["order"]}
    writes = {write["id"]: write["level"] for write in pool["writes"]}
    # Two of the queue's heads are labelled; the old level of a job behind them may stay where it is.
    assert levels == {"next": 0, "early": 0, "last": 7} | writes
    assert levels["rush"] > levels["late"] > 0
    words = fairlead("order", str(path), "--levels").stdout
    assert f"writes: {len(writes)}, in this order" in words


KUEUE: dict[str, object] = {"name": "cq", "frontend": "kueue", "bands_by_class": True}
STEERED: dict[str, object] = SNAPSHOT | {
    "policy": {"classes": ["urgent", "normal"], "bands": {"width": 10_000}},
    "queues": [KUEUE],
    "class_values": [{"class": "urgent", "value": 50_000}, {"class": "normal", "value": 100}],
    "jobs": [
        {"frontend": "kueue", "queue": "cq", "tenant": "team-1", "demand": {"cpu": 1}} | job
        for job in (
            {"id": "u1", "class": "urgent", "submitted": NOW - 9, "queue_time": NOW, "level": 50_000},
            {"id": "u2", "class": "urgent", "submitted": NOW - 8, "queue_time": NOW - 1, "level": 50_000},
            {"id": "n1", "submitted": NOW - 9, "queue_time": NOW, "level": 100},
            {"id": "n2", "submitted": NOW - 8, "queue_time": NOW - 1, "level": 100},
        )
    ],
}


def test_levels_lie_in_the_bands_of_classes_that_the_file_states(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(STEERED))
    [pool] = json.loads(fairlead("order", str(path), "--levels", "-o", "json").stdout)["pools"]
    writes = {write["id"]: write["level"] for write in pool["writes"]}
    assert list(writes) == ["u1", "n1"]
    assert 50_000 < writes["u1"] <= 60_000
    assert 100 < writes["n1"] <= 10_100
    assert "withheld" not in pool
    plain = fairlead(
        "order", "-", "--levels", "-o", "json", given=json.dumps(STEERED | {"queues": [], "class_values": []})
    )
    first = json.loads(plain.stdout)["pools"][0]["writes"][0]
    assert first["id"] == "u1"
    assert first["level"] > 60_000, "anywhere in one plain band"


def test_where_bands_cross_it_is_said_that_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(
        json.dumps(
            STEERED | {"class_values": [{"class": "normal", "value": 9}, {"class": "urgent", "value": 9}]}
        )
    )
    [pool] = json.loads(fairlead("order", str(path), "--levels", "-o", "json").stdout)["pools"]
    assert pool["writes"] == []
    [withheld] = pool["withheld"]
    assert (withheld["cluster"], withheld["frontend"]) == ("", "kueue")
    assert "class urgent has its floor at 9" in withheld["why"]
    words = fairlead("order", str(path), "--levels").stdout
    assert "no level is written to kueue: class urgent has its floor at 9" in words
    assert "goes that way already" not in words


def test_a_wrong_queue_is_told_with_its_place() -> None:
    wrong = STEERED | {"queues": [KUEUE | {"highest_level": 0}]}
    ended = fairlead("order", "-", "--levels", given=json.dumps(wrong))
    assert ended.returncode == 2
    assert (
        "queues[0].highest_level: line 1, column 1136: must not be below lowest_level, 1 (found 0)"
        in ended.stderr
    )


def test_words_say_why_each_job_stands_there() -> None:
    lines = fairlead("order", "-", given=json.dumps(SNAPSHOT)).stdout.splitlines()
    assert lines[0] == "pool gpu: 5 waiting"
    assert lines[1].split()[:7] == ["#", "job", "tenant", "class", "share", "entitled", "tag"]
    assert [line.split()[1] for line in lines[2:7]] == ORDER
    assert lines[1].endswith("the one above goes first because")
    assert lines[4].split()[4:6] == ["12.50%", "33.33%"]
    assert lines[2].endswith("  first")
    assert lines[3].endswith("  class urgent goes before normal"), "and no share is told"
    assert lines[4].endswith("  their tenant serves it first")
    assert lines[6].endswith("  (its tenant has weight 0: last)")
    assert "∞" in lines[6]


def test_words_name_the_tenant_that_stands_there_and_the_job_that_goes_first() -> None:
    """team-1 uses nothing: its organisation does. a2's key is lower than a1's, and it stands behind that one."""
    tree = {
        "now": NOW,
        "policy": {"aging": {"entitlement_per_day": 6}},
        "pools": [{"name": "p", "capacity": {"cpu": 20}}],
        "tenants": [
            {"name": "org", "pool": "p"},
            {"name": "team-1", "parent": "org", "pool": "p"},
            {"name": "team-2", "parent": "org", "pool": "p"},
        ],
        "running": [{"id": "r", "tenant": "team-2", "demand": {"cpu": 10}}],
        "jobs": [
            {"id": "a1", "tenant": "team-1", "submitted": NOW - 3600, "demand": {"cpu": 2}},
            {"id": "a2", "tenant": "team-2", "submitted": NOW - 7200, "demand": {"cpu": 2}},
        ],
    }
    lines = fairlead("order", "-", given=json.dumps(tree)).stdout.splitlines()
    assert lines[1].endswith("  its tenant"), "rows of figures do not say what lets another go first here"
    assert lines[2].endswith("  is below org, which is at 50.00% of its part of cpu")
    assert lines[3].endswith(
        "  is below org, which is at 60.00% of its part of cpu; behind a1, which org serves first"
    )


def test_yaml_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.yaml"
    path.write_text(
        "now: 2025-10-09T08:53:20Z\npools: [{name: p, capacity: {cpu: 4}}]\ntenants: [{name: a}]\n"
        "jobs:\n  - {id: one, tenant: a, submitted: 1759999000, demand: {cpu: 500m}}\n"
    )
    ended = fairlead("order", str(path), "-o", "json")
    assert [job["id"] for job in json.loads(ended.stdout)["pools"][0]["order"]] == ["one"], ended.stderr
    assert fairlead("order", "-", given=path.read_text()).returncode == 0


def test_what_is_wrong_is_told_at_once_without_a_stack_trace() -> None:
    jobs = [{"id": "a", "tenant": "x", "submitted": "now", "demand": {"cpu": -1}}]
    bad = SNAPSHOT | {"jobs": jobs, "policy": {"mode": "reserved"}, "nonsense": 1}
    ended = fairlead("order", "-", given=json.dumps(bad))
    assert ended.returncode == 2
    for said in (
        "jobs[0].tenant",
        "jobs[0].submitted",
        "demand.cpu",
        "nonsense",
        "policy.mode",
        "(found -1)",
    ):
        assert said in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("text", ["", "{", "now: [", "- 1", '{"now": 1}', "\x00"])
def test_what_is_no_snapshot_ends_with_code_2(text: str) -> None:
    ended = fairlead("order", "-", given=text)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


def test_a_file_that_is_not_there_is_said() -> None:
    assert "cannot be read" in fairlead("order", "/no/such/file").stderr


def test_thousands_of_problems_are_counted() -> None:
    jobs = [{"id": f"j{number}", "tenant": "x", "submitted": 0, "demand": {}} for number in range(1000)]
    ended = fairlead("order", "-", given=json.dumps(SNAPSHOT | {"jobs": jobs, "running": []}))
    assert f"… and {1000 - MOST_PROBLEMS} more" in ended.stderr


@given(st.randoms(use_true_random=False))
@settings(max_examples=20)
def test_the_same_facts_give_the_same_bytes(rng: random.Random) -> None:
    def printed(found: dict[str, object]) -> tuple[bytes, list[str]]:
        snapshot = read_snapshot(found)
        planned = order(snapshot, levels=True)
        return b"".join(as_json(planned, snapshot.now)), list(as_lines(planned, snapshot))

    mixed = dict(SNAPSHOT)
    for key, entries in SNAPSHOT.items():
        if isinstance(entries, list):
            mixed[key] = rng.sample(entries, len(entries))
    assert printed(mixed) == printed(SNAPSHOT)


def test_a_key_written_twice_in_a_yaml_snapshot_is_refused() -> None:
    twice = b"now: 1\njobs: []\npolicy: {}\njobs: [{id: j1}]\n"
    with pytest.raises(DocumentError, match="line 4, column 1: key 'jobs' is given in line 2 already"):
        parse(twice, name="twice.yaml", is_yaml=True)


def test_what_is_wrong_in_a_yaml_snapshot_is_told_by_line_and_column() -> None:
    wrong = b"""now: 2025-10-09T08:53:20Z
pools: [{name: p, capacity: {cpu: 4}}]
policy: {tenants: [{name: a, weight: -1}]}
tenants:
  - {name: a, weihgt: 3}
jobs:
  - {id: one, tenant: a, demand: {cpu: 1}}
"""
    with pytest.raises(DocumentError) as error:
        parse(wrong, name="wrong.yaml", is_yaml=True)
    told = [f"{problem.field}: {problem.reason}" for problem in error.value.problems]
    assert told == [
        "policy.tenants[0].weight: line 3, column 38: must be 0 or lie between 0.000001 and 1,000,000,000",
        (
            "tenants[0].weihgt: line 5, column 23: is not a key here: did you mean weight? Keys are name, parent, "
            "past_use, pool, unlisted, weight"
        ),
        "jobs[0].submitted: line 7, column 5: is missing",
    ]
