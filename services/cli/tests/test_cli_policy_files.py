import time
from pathlib import Path

import pytest

from fairlead_cli.errors import InputError
from fairlead_cli.policy.files import as_yaml, differences, parse_file, read_file, shipped_policy
from fairlead_contracts.policyfile.document import PolicyDocument, Tenant
from fairlead_sim.demo import demo_workload


def test_the_laptops_policy_has_three_teams_on_one_pool() -> None:
    policy = shipped_policy("laptop")
    assert {tenant.name: tenant.weight for tenant in policy.tenants} == {
        "team-a": 3,
        "team-b": 2,
        "team-c": 1,
    }
    assert [pool.members for pool in policy.pools] == [["sim/gpu"]]
    assert policy.grants


def test_the_demos_policy_is_that_of_its_workload() -> None:
    assert shipped_policy("demo") == demo_workload().policy


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("window: 0\nunknown: 1\ntenants:\n- {name: a, weight: -1}\n- {name: a}\n")
    with pytest.raises(InputError) as raised:
        read_file(path)
    told = "\n".join(raised.value.problems)
    for part in ("unknown", "window", "weight", "named twice"):
        assert part in told


def test_problems_are_told_with_line_and_column_from_the_first_line_to_the_last() -> None:
    text = """\
window: 0
tenants:
- name: a
  weight: -1
- weight: 2
  match: {scopes: [c, 4]}
unlisted_weight: 11:00
grants:
- tenant: nobody
  classes: [urgent]
"""
    with pytest.raises(InputError) as raised:
        parse_file(text, name="x")
    assert [problem.partition(": ")[2][:18] for problem in raised.value.problems] == [
        "line 1, column 9: ",
        "line 4, column 11:",
        "line 5, column 3: ",
        "line 6, column 23:",
        "line 7, column 18:",
        "line 9, column 11:",
    ]
    assert raised.value.problems[2] == "tenants[1].name: line 5, column 3: is missing"


def test_problems_of_json_and_of_repeated_blocks_have_places_too() -> None:
    with pytest.raises(InputError) as raised:
        parse_file('{"tenants": [{"name": "a", "weight": "x"}]}', name="x")
    assert raised.value.problems[0].startswith("tenants[0].weight: line 1, column 38: ")
    with pytest.raises(InputError) as raised:
        parse_file("tenants:\n- {name: a, match: &m {scopes: [1]}}\n- {name: b, match: *m}\n", name="x")
    assert [problem.partition(", column")[0] for problem in raised.value.problems] == [
        "tenants[0].match.scopes[0]: line 2",
        "tenants[1].match.scopes[0]: line 3",
    ]


@pytest.mark.parametrize("text", ["a: [", "- 1", ""])
def test_what_is_no_policy_is_said(text: str) -> None:
    with pytest.raises(InputError):
        parse_file(text, name="x")


def test_a_snapshot_is_told_by_name_and_so_is_a_key_that_was_nearly_right() -> None:
    with pytest.raises(InputError, match=r"^x looks like a snapshot") as refused:
        parse_file('{"policy": {}, "jobs": []}', name="x")
    assert "fairlead order" in refused.value.hint
    with pytest.raises(InputError) as refused:
        parse_file("tenant: []", name="x")
    told = "tenant: line 1, column 1: is not a key here: did you mean tenants? Keys are "
    assert told in refused.value.problems[0]


def test_a_text_that_is_no_yaml_is_told_with_the_line_and_no_name_but_the_files() -> None:
    with pytest.raises(InputError, match=r"^x is not valid YAML: line 2, column 1: ") as refused:
        parse_file("a: [", name="x")
    assert "string>" not in str(refused.value)


def test_a_difference_has_what_an_entry_says_and_not_what_it_leaves_out() -> None:
    before = parse_file("tenants: [{name: a}]", name="x").policy
    after = parse_file("tenants: [{name: a}, {name: robots}]\nresource_weights: {cpu: 0}", name="x").policy
    changes = list(differences(before, after))
    assert "+ tenants[robots].weight: 1.0" in changes
    assert not [line for line in changes if line.endswith(("null", '""', "[]", "{}"))]
    assert any(line.startswith("+ resource_weights.cpu: 0") for line in changes), "0 is said"


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_file(tmp_path / "missing.yaml")


def test_a_policy_survives_being_written_as_yaml() -> None:
    policy = shipped_policy("laptop")
    assert parse_file(as_yaml(policy), name="x").policy == policy


def test_a_key_written_twice_is_refused_with_its_lines_and_a_merged_one_is_none() -> None:
    twice = "tenants: [{name: a, weight: 3}]\nhalf_life_hours: 24\ntenants: [{name: a}]\n"
    with pytest.raises(InputError) as raised:
        parse_file(twice, name="twice.yaml")
    assert "line 3, column 1: key 'tenants' is given in line 1 already" in raised.value.problems[0]
    with pytest.raises(InputError) as raised:
        parse_file("tenants: [{name: a, weight: 3, weight: 4}]", name="twice.yaml")
    assert raised.value.problems[0].startswith("tenants[0].weight: line 1, column 32: key 'weight' is given")
    merged = "tenants:\n- &a {name: a, weight: 3}\n- &b {<<: *a, name: b}\n- {<<: *b, name: c, weight: 2}\n"
    assert [tenant.weight for tenant in parse_file(merged, name="merged.yaml").policy.tenants] == [3, 3, 2]


def test_what_thousands_of_tenants_change_is_told_at_once() -> None:
    """Each key that only one side has looked through all keys of both: 12,000 tenants took minutes, 150,000 hours."""
    many = PolicyDocument(tenants=[Tenant(name=f"t{number}", weight=0) for number in range(4000)])
    began = time.process_time()
    lines = list(differences(PolicyDocument(), many))
    assert time.process_time() - began < 2
    assert "+ tenants[t1].weight: 0" in {line.removesuffix(".0") for line in lines}
