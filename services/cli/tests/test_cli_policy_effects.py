"""Words of a policy without effect are told wherever it is read."""

import json
import os
from pathlib import Path

import pytest

from fairlead_cli.policy.applying import remark_on
from fairlead_cli.policy.effects import without_effect
from fairlead_cli.policy.file_commands import check_file, print_file
from fairlead_cli.policy.members import KnownPools
from fairlead_contracts.policyfile.read import read_document
from fairlead_testkit.processes.command import fairlead

WEIGHTS = {"urgent": 1000, "approved": 100, "normal": 1}
NOBODY_THERE = "127.0.0.1:1"
"""An address that no service has."""
SAID = "warning: class_weights have no effect with class_mode strict"


def test_weights_of_strict_classes_are_told_by_check_show_and_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, snapshot = tmp_path / "policy.yaml", tmp_path / "snapshot.json"
    policy.write_text(json.dumps({"class_weights": WEIGHTS}))
    pools = [{"name": "p", "capacity": {"cpu": 1}}]
    snapshot.write_text(json.dumps({"now": 0, "policy": {"class_weights": WEIGHTS}, "pools": pools}))
    check_file(policy, KnownPools)
    assert SAID in capsys.readouterr().err
    print_file(policy, KnownPools, form="json")
    assert SAID in capsys.readouterr().err
    ended = fairlead("order", str(snapshot))
    assert (ended.returncode, SAID in ended.stderr) == (0, True)


@pytest.mark.parametrize(
    "found", [{}, {"class_mode": "wdrf"}, {"class_mode": "multiplicative", "class_weights": WEIGHTS}]
)
def test_what_has_an_effect_is_passed_over(found: dict[str, object]) -> None:
    assert list(without_effect(read_document(found))) == []


def test_check_warns_of_what_apply_warns_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "policy.yaml"
    found = {"class_weights": WEIGHTS, "fit": {"strategy": "binpack"}, "mode": "reserve"}
    policy.write_text(json.dumps(found | {"unlisted_weight": 1}))
    remark_on(read_document(found))
    by_apply = capsys.readouterr().err
    check_file(policy, KnownPools)
    assert capsys.readouterr().err == by_apply
    assert [line.partition(" ")[0] for line in by_apply.splitlines()] == ["warning:"] * 3
    check_file(policy, KnownPools, form="json")
    assert len(json.loads(capsys.readouterr().out)["warnings"]) == 3


WIDE = {"name": "a", "match": {"scopes": ["a", "b"]}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (WIDE, {"name": "b"}),
        (WIDE, {"name": "c", "match": {"scopes": ["b"], "labels": {"kind": "ci"}}}),
        (WIDE, {"name": "c", "match": {"local_queues": ["b/gpu"]}}),
        (
            {"name": "a", "match": {"queues": ["q"]}},
            {"name": "c", "match": {"queues": ["q"], "clusters": ["x"]}},
        ),
        ({"name": "a", "match": {}}, {"name": "b"}),
    ],
)
def test_a_tenant_behind_one_that_takes_all_its_jobs_is_told(
    first: dict[str, object], second: dict[str, object]
) -> None:
    [said] = without_effect(read_document({"tenants": [first, second]}))
    assert said.startswith(
        f"tenants[1] {second['name']} never has a job: a, which stands before it, takes all"
    )


@pytest.mark.parametrize(
    "tenants",
    [
        [{"name": "b"}, WIDE],
        [WIDE, {"name": "c", "match": {"scopes": ["b", "c"]}}],
        [{"name": "a", "match": {"scopes": ["b"], "clusters": ["x"]}}, {"name": "b"}],
        [{"name": "a", "match": {"scopes": ["b"], "labels": {"kind": "ci"}}}, {"name": "b"}],
        [{"name": "b", "parent": "top"}, {"name": "top"}],
    ],
)
def test_a_tenant_that_can_have_a_job_is_not_called_shadowed(tenants: list[dict[str, object]]) -> None:
    assert list(without_effect(read_document({"tenants": tenants}))) == []


POLICY = "pools: [{name: gpu, members: [sim/gpu]}]\ntenants: [{name: team-a, weight: 3}, {name: team-b}]\n"


def test_check_and_show_say_what_a_day_of_waiting_is_worth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    check_file(policy, lambda: KnownPools({"gpu": {"nvidia.com/gpu": 32_000}}))
    said = capsys.readouterr().out
    assert "aging: a day of waiting is worth 0.1 of what a tenant is entitled to" in said
    assert "pool gpu of 32 gpu: a day is worth 2.4 gpu for team-a, 0.8 gpu for team-b" in said
    print_file(policy, KnownPools, form="json")
    shown = capsys.readouterr()
    assert "pool gpu: a day is worth 7.5 % of it for team-a, 2.5 % of it for team-b" in shown.err
    assert json.loads(shown.out)["tenants"], "the result itself is untouched"


def test_without_a_running_instance_check_tells_it_in_parts(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("unlisted_weight: 1\n")
    environ = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    environ.pop("FAIRLEAD_NATS_URL", None)
    done = fairlead("policy", "check", str(policy), environ=environ)
    assert done.returncode == 0
    assert "pool (each): a day is worth 1.0 % of it for each unlisted tenant" in done.stdout


@pytest.mark.parametrize("verb", ["check", "show", "diff", "apply"])
def test_what_is_wrong_with_a_file_is_told_before_anybody_is_asked(verb: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("window: 0\n")
    told = fairlead("policy", verb, str(policy), "--nats", f"nats://{NOBODY_THERE}")
    assert told.returncode == 2, told.stderr
    assert f"error: {policy} is not a valid policy:" in told.stderr
    assert "changed" not in told.stderr, "nothing was to be"


def test_a_file_that_is_right_is_told_so_also_where_nobody_is_there(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    told = fairlead("policy", "check", str(policy), "--nats", f"nats://{NOBODY_THERE}")
    assert (told.returncode, told.stdout) == (3, f"{policy} is valid; tenants: 2, pools: 1\n")
