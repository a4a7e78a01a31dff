"""Changes of the policy are not lost to another's, nor approvals to either: on a real nats-server."""

import asyncio
import json
import re
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Bucket, Bus, ConnectionSettings, connect
from fairlead_bus.server.provision import provision
from fairlead_cli.errors import InputError, OvertakenError, UnreadPolicyError
from fairlead_cli.options import Format
from fairlead_cli.policy.applying import ApplyTerms, apply_file, put_in_force
from fairlead_cli.policy.file_commands import check_file, print_differences
from fairlead_cli.policy.files import PolicyFile, differences, parse_file
from fairlead_cli.policy.history import print_history, put_back
from fairlead_cli.policy.in_force import print_policy
from fairlead_cli.policy.members import known_pools
from fairlead_cli.policy.store import stored_policy
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.state import PoolState
from fairlead_contracts.policyfile.document import Grant, PolicyDocument
from fairlead_contracts.policyfile.read import decode_document, encode_document, read_document
from fairlead_testkit import NatsServer
from fairlead_testkit.inputs.builders import a_leader

pytestmark = pytest.mark.integration

BEFORE = "unlisted_weight: 1\ntenants: [{name: a, weight: 3}, {name: b}]\n"
URGENT = {"tenant": "a", "classes": ["urgent"], "job": "job-53d", "by": "ann", "why": "demo"}


@pytest.fixture
async def bus(bus: Bus) -> Bus:
    """A bus with a policy in force."""
    await apply_file(bus, parse_file(BEFORE, name="before"))
    return bus


async def check(nats: str, file: Path, *, form: Format = "table") -> None:
    known = await known_pools(nats)
    check_file(file, lambda: known, form=form)


async def test_a_policy_that_nats_does_not_take_is_told_by_check_and_refused_with_what_to_do(
    nats: str, bus: Bus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.json"
    tenants = [{"name": f"tenant-{number}", "match": {"scopes": ["x" * 200]}} for number in range(4000)]
    file.write_text(json.dumps({"tenants": tenants}))
    await check(nats, file)
    assert "bytes as it is stored: NATS takes 1,048,576" in capsys.readouterr().err
    before = await stored_policy(bus)
    with pytest.raises(InputError, match=r"has 1,\d{3},\d{3} bytes .* takes 1,048,576") as refused:
        await put_in_force(nats, file)
    assert "max_payload" in refused.value.hint
    assert await stored_policy(bus) == before


async def test_a_member_that_no_cluster_states_is_told_by_check_and_apply(
    nats: str, bus: Bus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("pools: [{name: gpu, members: [simm/gpu, sim/gpu, sim/gpus]}]\ntenants: [{name: a}]\n")
    said = "pools[0].members: no cluster simm is known, and pool gpu has no order until it is there"
    less = "pools[0].members: cluster sim has no pool gpus, so sim/gpus adds nothing to pool gpu"
    await check(nats, file)
    assert "members" not in capsys.readouterr().err, "before any cluster is there, nothing is known"

    for name, epoch in (("gpu", 1), ("gpu", 2), ("old", 1)):
        state = PoolState(cluster="sim", epoch=epoch, rev=1, name=name, capacity={})
        await bus.publish(subjects.state("sim", "pool", name), to_json(state))
    await bus.delete(subjects.state("sim", "pool", "old"))
    await check(nats, file, form="json")
    told = capsys.readouterr()
    known = "Known are sim/gpu. Did you mean sim/gpu?"
    assert json.loads(told.out)["warnings"] == [f"{said}. {known}", f"{less}. {known}"]
    assert f"warning: {said}" in told.err
    await put_in_force(nats, file)
    assert f"warning: {less}" in capsys.readouterr().err


async def test_a_member_of_a_cluster_that_ended_is_told_by_check_and_apply(
    nats: str, bus: Bus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Facts of a cluster stay in the store after its end: they are no sign that it is there."""
    file = tmp_path / "policy.yaml"
    file.write_text("pools: [{name: gpu, members: [sim/gpu, lab/gpu]}]\ntenants: [{name: a}]\n")
    for cluster in ("sim", "lab"):
        state = PoolState(cluster=cluster, epoch=1, rev=1, name="gpu", capacity={})
        await bus.publish(subjects.state(cluster, "pool", "gpu"), to_json(state))
    await check(nats, file)
    assert "members" not in capsys.readouterr().err, "where no cluster is led, nothing is known"
    for cluster in ("sim", "lab"):
        lease = a_leader(cluster=cluster)
        await Bucket(bus, topology.MEMBERS).create(
            subjects.leader_key(lease.role, lease.cluster), to_json(lease)
        )
    await Bucket(bus, topology.MEMBERS).delete(subjects.leader_key("admitter", "sim"))
    said = "pools[0].members: pool gpu has sim/gpu, and no service leads cluster sim now: what is known of it is old. Led now: lab"
    await check(nats, file, form="json")
    assert json.loads(capsys.readouterr().out)["warnings"] == [said]
    await put_in_force(nats, file)
    assert f"warning: {said}" in capsys.readouterr().err


async def test_a_pool_of_which_nobody_knows_what_it_has_is_not_counted_in_cards(
    nats: str, bus: Bus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The pool in force of that name has cards; with a member that no cluster states it is another one."""
    file = tmp_path / "policy.yaml"
    file.write_text("pools: [{name: gpu, members: [simm/gpu]}]\ntenants: [{name: a}]\n")
    state = PoolState(cluster="sim", epoch=1, rev=1, name="gpu", capacity={})
    await bus.publish(subjects.state("sim", "pool", "gpu"), to_json(state))
    known = (await known_pools(nats))._replace(capacities={"gpu": {"nvidia.com/gpu": 32_000}})
    check_file(file, lambda: known)
    assert "pool gpu: a day is worth 10.0 % of it for a" in capsys.readouterr().out
    file.write_text("pools: [{name: gpu, members: [sim/gpu]}]\ntenants: [{name: a}]\n")
    check_file(file, lambda: known)
    assert "pool gpu of 32 gpu: a day is worth 3.2 gpu for a" in capsys.readouterr().out


async def test_a_policy_that_lets_nobody_in_is_told_by_check_and_apply(
    nats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\n")
    await check(nats, file)
    assert "every submission is refused" in capsys.readouterr().err
    await put_in_force(nats, file)
    assert "every submission is refused" in capsys.readouterr().err
    file.write_text("unlisted_weight: 1\n")
    await check(nats, file)
    assert "every submission is refused" not in capsys.readouterr().err


async def now(bus: Bus) -> tuple[PolicyDocument, int]:
    found = await stored_policy(bus)
    assert found is not None
    return found


async def approvals(bus: Bus) -> dict[str | None, list[str]]:
    policy, _ = await now(bus)
    return {grant.job: grant.classes for grant in policy.grants if grant.job is not None}


async def write(bus: Bus, **keys: object) -> int:
    """Changes the policy in force, as somebody would behind everybody's back."""
    policy, revision = await now(bus)
    changed = read_document({**msgspec.to_builtins(policy), **keys})
    return await Bucket(bus, topology.POLICY).update(
        subjects.DOCUMENT_KEY, encode_document(changed), revision
    )


async def shown(nats: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The output of `fairlead policy show`."""
    capsys.readouterr()
    await print_policy(nats, form="table")
    return capsys.readouterr().out


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


async def test_what_show_prints_goes_back_in_force_over_its_own_revision_alone(
    bus: Bus, nats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = await shown(nats, capsys)
    edited = written(tmp_path / "new.yaml", text.replace("window: 32", "window: 7"))
    between = await write(bus, tenants=[{"name": "a", "weight": 5}, {"name": "b"}])
    with pytest.raises(OvertakenError) as refused:
        await put_in_force(nats, edited)
    assert refused.value.problems == ["- tenants[a].weight: 3.0", "+ tenants[a].weight: 5.0"]
    assert f"--onto {between}" in refused.value.hint
    assert (await now(bus))[0].window == 32
    assert await print_differences(nats, edited)
    assert "`apply` would refuse it" in capsys.readouterr().err
    await put_in_force(nats, edited, ApplyTerms(onto=between))
    policy, _ = await now(bus)
    assert (policy.window, policy.tenants[0].weight) == (7, 3)
    said = capsys.readouterr().out
    assert f"changed from revision {between}:" in said
    assert "+ tenants[a].weight: 3.0" in said


async def test_a_file_that_is_in_force_already_is_no_conflict_whatever_it_was_made_from(
    bus: Bus, nats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = await shown(nats, capsys)
    edited = written(tmp_path / "new.yaml", old.replace("window: 32", "window: 7"))
    await put_in_force(nats, edited)
    _, revision = await now(bus)
    await put_in_force(nats, edited)
    assert (await now(bus))[1] == revision
    with pytest.raises(OvertakenError):
        await put_in_force(nats, written(tmp_path / "old.yaml", old.replace("window: 32", "window: 8")))
    await put_in_force(nats, tmp_path / "old.yaml", ApplyTerms(force=True))
    assert (await now(bus))[0].window == 8


async def test_of_four_at_once_exactly_one_is_in_force_and_the_others_are_told(
    bus: Bus, nats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = await shown(nats, capsys)
    files = [written(tmp_path / f"{n}.yaml", text.replace("window: 32", f"window: {n}")) for n in range(1, 5)]
    ends = await asyncio.gather(*(put_in_force(nats, file) for file in files), return_exceptions=True)
    [winner] = [number for number, end in enumerate(ends, start=1) if end is None]
    assert (await now(bus))[0].window == winner
    for end in ends:
        if end is not None:
            assert isinstance(end, OvertakenError)
            assert end.problems == ["- window: 32", f"+ window: {winner}"]


async def test_a_file_without_a_revision_is_not_put_over_what_came_after_the_look(
    bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = Bucket.update

    async def beaten(self: Bucket, key: str, value: bytes, rev: int, *, by: str) -> int:
        monkeypatch.setattr(Bucket, "update", update)
        await write(bus, window=9)
        return await update(self, key, value, rev, by=by)

    monkeypatch.setattr(Bucket, "update", beaten)
    file = parse_file(BEFORE + "window: 7\n", name="new.yaml")
    with pytest.raises(OvertakenError, match=r"new\.yaml was not put in force") as refused:
        await apply_file(bus, file)
    assert refused.value.problems == ["- window: 32", "+ window: 9"]
    assert (await now(bus))[0].window == 9
    monkeypatch.setattr(Bucket, "update", beaten)
    assert (await apply_file(bus, file, ApplyTerms(force=True))).written
    assert (await now(bus))[0].window == 7


async def test_a_first_policy_is_not_put_over_another_first_one(
    nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = Bucket.create

    async def beaten(self: Bucket, key: str, value: bytes, *, by: str) -> int:
        monkeypatch.setattr(Bucket, "create", create)
        await self.put(key, encode_document(read_document({"window": 9})))
        return await create(self, key, value, by=by)

    async with connect(ConnectionSettings(url=nats_server.url), name="test") as bus:
        await provision(bus, topology.topology(["c1"]))
        monkeypatch.setattr(Bucket, "create", beaten)
        with pytest.raises(OvertakenError):
            await apply_file(bus, parse_file(BEFORE, name="x"))
        assert (await now(bus))[0].window == 9


async def test_a_revision_that_is_not_kept_is_said(bus: Bus, nats: str, tmp_path: Path) -> None:
    path = written(tmp_path / "x.yaml", "# policy revision 999\nwindow: 7\n")
    with pytest.raises(OvertakenError, match="999, which it was made from, is not kept here"):
        await put_in_force(nats, path)
    assert (await now(bus))[0].window == 32


async def test_approvals_outlive_a_file_that_does_not_know_them(
    bus: Bus, nats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = written(tmp_path / "stale.yaml", (await shown(nats, capsys)).replace("window: 32", "window: 7"))
    kept = written(tmp_path / "kept.yaml", BEFORE + "window: 8\n")
    await write(bus, grants=[URGENT])  # `approve` is no change that a file has to be made from
    for file, window in ((stale, 7), (kept, 8)):
        await put_in_force(nats, file)
        said = capsys.readouterr().out
        assert "urgent for job job-53d of a, by ann: demo" in said
        assert "these approvals stay" in said
        assert (await now(bus))[0].window == window
        assert await approvals(bus) == {"job-53d": ["urgent"]}
    await put_in_force(nats, kept, ApplyTerms(exact=True))
    assert "approvals taken back:" in capsys.readouterr().out
    assert await approvals(bus) == {}


async def test_what_was_taken_back_since_does_not_come_back_with_a_file_that_still_has_it(
    bus: Bus, nats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {**URGENT, "job": "job-2"}
    await write(bus, grants=[URGENT, more])
    stale = written(tmp_path / "stale.yaml", (await shown(nats, capsys)).replace("window: 32", "window: 7"))
    await write(bus, grants=[more])
    await put_in_force(nats, stale)
    assert "taken back since, and stay taken back" in capsys.readouterr().out
    assert await approvals(bus) == {"job-2": ["urgent"]}
    # One that the person wrote there counts, whoever approved otherwise.
    text = (await shown(nats, capsys)).replace("- urgent\n  priority", "- approved\n  priority")
    assert text.count("- approved\n") == 2, "once among the classes"
    await put_in_force(nats, written(tmp_path / "edited.yaml", text))
    assert await approvals(bus) == {"job-2": ["approved"]}


async def test_an_approval_that_cannot_be_kept_refuses_the_file_by_name(bus: Bus) -> None:
    await write(bus, tenants=[{"name": "a"}, {"name": "z"}], grants=[URGENT, {**URGENT, "tenant": "z"}])
    fewer = PolicyFile(name="fewer.yaml", policy=read_document({"classes": ["gold", "normal"]}))
    with pytest.raises(InputError) as refused:
        await apply_file(bus, fewer)
    assert [re.sub(" for job .*: ", ": ", one) for one in refused.value.problems] == [
        "urgent: fewer.yaml has no class urgent",
        "urgent: fewer.yaml has no class urgent",
    ]
    nobody = PolicyFile(name="x", policy=read_document({"tenants": [{"name": "a"}]}))
    with pytest.raises(InputError) as refused:
        await apply_file(bus, nobody)
    assert [one.rpartition(": ")[2] for one in refused.value.problems] == ["x has no tenant z"]
    # Whoever is let in unlisted keeps what was approved, and stays unlisted.
    assert (await apply_file(bus, PolicyFile(name="x", policy=read_document({"unlisted_weight": 2})))).written
    policy, _ = await now(bus)
    assert (policy.tenants, [one.tenant for one in policy.grants]) == ([], ["a", "z"])


async def test_revert_leaves_approvals_alone_unless_told(
    bus: Bus, nats: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await write(bus, window=7, grants=[{**URGENT, "job": "old"}])
    _, wanted = await now(bus)
    await write(bus, window=8, grants=[URGENT])
    await put_back(nats, wanted)
    assert (await now(bus))[0].window == 7
    assert await approvals(bus) == {"job-53d": ["urgent"]}
    await put_back(nats, wanted)
    assert "--exact puts back those of that revision" in capsys.readouterr().out
    await put_back(nats, wanted, exact=True)
    assert await approvals(bus) == {"old": ["urgent"]}


def test_a_grant_to_a_job_is_told_by_its_job() -> None:
    plain = {"tenant": "a", "classes": ["urgent"]}
    before = read_document({"tenants": [{"name": "a"}], "grants": [URGENT, plain]})
    after = msgspec.structs.replace(before, grants=[Grant(tenant="a", classes=["urgent"])])
    assert {line.partition(".")[0] for line in differences(before, after)} == {"- grants[job-53d]"}
    twice = msgspec.structs.replace(before, grants=[*before.grants, before.grants[0]])
    assert {line.partition(".")[0] for line in differences(before, twice)} == {"+ grants[job-53d, 2]"}


async def test_what_another_release_wrote_is_not_written_over_unasked(bus: Bus) -> None:
    await Bucket(bus, topology.POLICY).put(subjects.DOCUMENT_KEY, b'{"version": 7}')
    with pytest.raises(UnreadPolicyError, match="written last, does not validate") as refused:
        await apply_file(bus, parse_file(BEFORE, name="x"))
    assert "Another release may have written it" in refused.value.hint
    assert (await apply_file(bus, parse_file(BEFORE, name="x"), ApplyTerms(force=True))).written


BROKEN = {
    "not text": b"\xff\xfe",
    "nothing": b"",
    "an answer of the server": b'{"stream":"submit","seq":7}',
    "no mapping": b"[]",
    "another version": b'{"version": 7}',
    "nested too deep": b"[" * 100_000,
    "invalid": b'{"tenants": [{"name": "a", "weight": -1}]}',
}


@pytest.mark.parametrize("body", BROKEN.values(), ids=BROKEN)
async def test_a_broken_document_is_spoken_of_plainly_and_what_services_go_by_is_shown(
    bus: Bus, nats: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], body: bytes
) -> None:
    await write(bus, grants=[URGENT])
    before, followed = await now(bus)
    last = await Bucket(bus, topology.POLICY).put(subjects.DOCUMENT_KEY, body)
    words = f"policy revision {last}, written last, does not validate; services go by revision {followed}"
    await print_policy(nats, form="json")
    shown = capsys.readouterr()
    assert read_document(msgspec.json.decode(shown.out)) == before
    assert words in shown.err
    file = written(tmp_path / "after.yaml", BEFORE + "window: 8\n")
    assert await print_differences(nats, file)
    assert "without --force" in capsys.readouterr().err
    with pytest.raises(UnreadPolicyError) as refused:
        await put_in_force(nats, file)
    assert words in str(refused.value)
    assert refused.value.problems
    await print_history(nats, form="table")
    told = capsys.readouterr().out.splitlines()
    assert [line.partition(",")[0] for line in told if line.endswith(", in force")] == [
        f"revision {followed}"
    ]
    assert any("does not validate: " in line for line in told)
    await put_in_force(nats, file, ApplyTerms(force=True))
    assert (await now(bus))[0].window == 8
    assert await approvals(bus) == {
        "job-53d": ["urgent"]
    }  # those of the last revision that validates are kept


async def test_the_way_back_from_a_broken_document_is_what_services_go_by(bus: Bus, nats: str) -> None:
    before, _ = await now(bus)
    bucket = Bucket(bus, topology.POLICY)
    for body in BROKEN.values():
        await bucket.put(subjects.DOCUMENT_KEY, body)
    await put_back(nats, None)
    entry = await bucket.get(subjects.DOCUMENT_KEY)
    assert entry is not None
    assert decode_document(entry.value) == before


async def test_a_stored_policy_in_the_old_unit_of_aging_is_told_and_a_new_file_goes_over_it_by_force(
    bus: Bus, nats: str, capsys: pytest.CaptureFixture[str]
) -> None:
    policy, revision = await now(bus)
    old = {**msgspec.to_builtins(policy), "aging": {"share_per_hour": 0.06, "cap_hours": 336.0}}
    await Bucket(bus, topology.POLICY).update(subjects.DOCUMENT_KEY, msgspec.json.encode(old), revision)
    await print_policy(nats, form="table")
    # 3 and 1, and ten strangers of 1: 0.06 an hour, times 24, times 14.
    assert "this number times 24, times the sum of the weights at the top" in capsys.readouterr().err
    after = parse_file(BEFORE + "aging: {entitlement_per_day: 20.16, cap_days: 14}\n", name="after")
    assert (await apply_file(bus, after, ApplyTerms(force=True))).written
    await print_policy(nats, form="table")
    assert "entitlement_per_day: 20.16" in capsys.readouterr().out
