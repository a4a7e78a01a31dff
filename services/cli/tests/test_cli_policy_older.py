"""Configurations of the two older controllers put over a policy: they say nothing of who has what."""

from pathlib import Path

import pytest

from fairlead_bus import Bus
from fairlead_cli.errors import InputError
from fairlead_cli.policy.applying import ApplyTerms, apply_file, put_in_force
from fairlead_cli.policy.file_commands import check_file, print_differences, print_file
from fairlead_cli.policy.files import PolicyFile, parse_file, shipped_policy
from fairlead_cli.policy.members import KnownPools
from fairlead_cli.policy.store import stored_policy
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.read import read_document
from fairlead_testkit import NatsServer

DRF = "kind: ConfigMap\ndata: {aging_alpha: '0.5', max_aging_hours: '24'}\n"
WDRF = 'AGING_COEFFICIENT=0.1\nMAX_AGING_TIME=3600\nRESOURCE_WEIGHTS={"memory": 2}\n'
URGENT = {"tenant": "team-b", "classes": ["urgent"], "job": "job-53d"}


async def policy(bus: Bus) -> PolicyDocument:
    found = await stored_policy(bus)
    assert found is not None
    return found[0]


@pytest.mark.integration
async def test_put_over_a_policy_they_change_what_they_say_alone(
    bus: Bus, nats_server: NatsServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    laptop = shipped_policy("laptop")
    await apply_file(bus, PolicyFile(name="laptop", policy=laptop))
    path = tmp_path / "wdrf.env"
    path.write_text(WDRF)
    assert await print_differences(nats_server.url, path)
    shown = capsys.readouterr()
    changed = {line[2:].partition(":")[0].partition(".")[0] for line in shown.out.splitlines()}
    assert changed == {"aging", "class_mode", "class_weights", "divide_by", "resource_weights"}
    await put_in_force(nats_server.url, path)
    said = capsys.readouterr().out
    for words in (shown.err, said):
        assert "a configuration of the WDRF controller: it says nothing of pools, tenants and grants" in words
        assert "Those of revision 1 stay" in words
        assert "urgent: granted to team-a\n" in words
        assert "approved: granted to team-b\n" in words
    after = await policy(bus)
    assert (after.pools, after.tenants, after.grants) == (laptop.pools, laptop.tenants, laptop.grants)
    assert after.unlisted_weight is None, "whom the policy refuses is still refused"
    assert (after.class_mode, after.resource_weights) == ("multiplicative", {"memory": 2})
    assert (after.aging.entitlement_per_day, after.aging.cap_days) == (8640, 1 / 24)


@pytest.mark.integration
async def test_grants_of_a_class_that_they_have_not_go_and_are_named(bus: Bus) -> None:
    laptop = shipped_policy("laptop")
    await apply_file(bus, PolicyFile(name="laptop", policy=laptop))
    done = await apply_file(bus, parse_file(DRF, name="drf.yaml"))  # it has urgent and normal alone
    told = "approved: no class any more; what was granted to team-b goes (`revert` brings it back)"
    assert told in done.notes
    assert (await policy(bus)).grants == [one for one in laptop.grants if one.classes == ["urgent"]]


@pytest.mark.integration
async def test_an_approval_of_a_class_that_they_have_not_refuses_them(bus: Bus) -> None:
    approved = {**URGENT, "classes": ["approved"]}
    before = read_document({"tenants": [{"name": "team-b"}], "grants": [approved]})
    await apply_file(bus, PolicyFile(name="x", policy=before))
    with pytest.raises(InputError) as refused:
        await apply_file(bus, parse_file(DRF, name="drf.yaml"))
    assert refused.value.problems == ["approved for job job-53d of team-b: drf.yaml has no class approved"]


@pytest.mark.integration
async def test_approvals_stay_and_that_nobody_is_granted_urgent_is_said(bus: Bus) -> None:
    before = read_document({"tenants": [{"name": "team-b"}], "grants": [URGENT], "window": 7})
    await apply_file(bus, PolicyFile(name="x", policy=before))
    done = await apply_file(bus, parse_file(DRF, name="drf.yaml"))
    assert "urgent: granted to 1 job" in done.notes
    after = await policy(bus)
    assert (after.class_mode, after.window, after.grants) == ("additive", 7, before.grants)
    done = await apply_file(bus, parse_file(DRF, name="drf.yaml"), ApplyTerms(exact=True))
    assert any(note.startswith("urgent: granted to nobody") for note in done.notes)
    assert not (await policy(bus)).grants


@pytest.mark.integration
async def test_the_first_policy_of_all_is_what_they_mean_by_themselves(bus: Bus) -> None:
    done = await apply_file(bus, parse_file(DRF, name="drf.yaml"))
    assert any("no policy that has any: all tenants have weight 1" in note for note in done.notes)
    assert (await policy(bus)).unlisted_weight == 1


def test_check_and_show_say_what_becomes_of_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "drf.yaml"
    path.write_text(DRF)
    check_file(path, KnownPools)
    assert "Put in force, it keeps those of the policy before it" in capsys.readouterr().out
    print_file(path, KnownPools, form="table")
    shown = capsys.readouterr()
    assert "the controller took every job at its word" in shown.err
    assert "class_mode: additive" in shown.out
    ours = tmp_path / "ours.yaml"
    ours.write_text("window: 7\n")
    check_file(ours, KnownPools)
    told = capsys.readouterr()
    valid, worth = told.out.splitlines()
    assert valid == f"{ours} is valid; tenants: 0, pools: 0"
    assert worth.startswith("aging: ")
    assert "every submission is refused" in told.err
