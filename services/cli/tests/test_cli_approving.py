import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Asked, Bucket, Bus
from fairlead_cli.client.asking import show_explanation
from fairlead_cli.errors import CommandError, InputError, OvertakenError
from fairlead_cli.policy import approving
from fairlead_cli.policy.applying import ApplyTerms, apply_file, put_in_force
from fairlead_cli.policy.approving import ApprovalRequest, approve, granted, withdraw
from fairlead_cli.policy.file_commands import print_differences
from fairlead_cli.policy.files import PolicyFile
from fairlead_cli.policy.history import print_history
from fairlead_cli.policy.in_force import print_policy
from fairlead_cli.policy.store import stored_policy
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.messages import questions
from fairlead_contracts.messages.questions import EXPLAIN_QUESTION, ExplainReply, Explanation
from fairlead_contracts.policyfile.document import Grant, PolicyDocument
from fairlead_contracts.policyfile.read import encode_document, read_document

UID = "0d9e2c9c-6f4e-4c0e-9d0a-0123456789ab"
GONE = "0d9e2c9c-6f4e-4c0e-9d0a-00000000dead"


def a_job(
    uid: str = UID, *, phase: str = "waiting", scope: str = "team-a", refused: str | None = None
) -> Explanation:
    return Explanation(
        cluster="lab",
        scope=scope,
        id=f"job-train-{uid[-4:]}",
        uid=uid,
        phase=phase,
        queue="gpus",
        tenant=scope,
        owner="Job/train",
        refused_class=refused,
    )


def granted_by(by: str, why: str) -> questions.Approval:
    return questions.Approval(job_class="urgent", by=by, why=why)


def policy(**keys: object) -> PolicyDocument:
    return read_document({"unlisted_weight": 1, "tenants": [{"name": "team-a", "weight": 3}], **keys})


def grant(document: PolicyDocument, job_class: str | None = None, **job: str) -> Grant:
    changed = granted(
        document, a_job(**job), ApprovalRequest(job="train", job_class=job_class, by="ann", why="demo")
    )
    return changed.grants[-1]


def test_a_grant_names_the_job_the_class_who_and_why() -> None:
    assert grant(policy(), "approved") == Grant(
        tenant="team-a", classes=["approved"], job=UID, by="ann", why="demo"
    )


def test_without_a_class_it_is_what_the_job_asked_for_or_the_highest() -> None:
    assert grant(policy()).classes == ["urgent"]
    assert grant(policy(), refused="approved").classes == ["approved"]
    assert grant(policy(), refused="no-such-class").classes == ["urgent"]


def test_a_second_grant_takes_the_place_of_the_first_and_leaves_others() -> None:
    others = [
        {"tenant": "team-a", "classes": ["urgent"]},
        {"tenant": "team-a", "classes": ["urgent"], "job": "x"},
    ]
    first = granted(policy(grants=others), a_job(), ApprovalRequest(job="train", job_class="urgent"))
    second = granted(first, a_job(), ApprovalRequest(job="train", job_class="approved"))
    assert [(one.job, one.classes) for one in second.grants] == [
        (None, ["urgent"]),
        ("x", ["urgent"]),
        (UID, ["approved"]),
    ]


def test_a_grant_given_again_keeps_its_reason_and_one_of_another_class_has_its_own() -> None:
    first = granted(policy(), a_job(), ApprovalRequest(job="train", job_class="urgent", by="ann", why="demo"))
    again = granted(first, a_job(), ApprovalRequest(job="train", job_class="urgent", by="bob"))
    assert (again.grants[-1].by, again.grants[-1].why) == ("bob", "demo")
    other = granted(again, a_job(), ApprovalRequest(job="train", job_class="approved", by="bob"))
    assert other.grants[-1].why == ""


def test_who_is_let_in_unlisted_stays_so_and_no_entitlement_moves() -> None:
    before = policy(unlisted_weight=0.5)
    changed = granted(before, a_job(scope="team-z"), ApprovalRequest(job="train", job_class="urgent"))
    assert changed.tenants == before.tenants
    assert (changed.grants[-1].tenant, changed.grants[-1].job) == ("team-z", UID)
    with pytest.raises(InputError, match="not in the policy"):
        granted(policy(unlisted_weight=None), a_job(scope="team-z"), ApprovalRequest(job="train"))


@pytest.mark.parametrize(
    ("job_class", "said"), [("normal", "every job may have it"), ("gold", "is not a class")]
)
def test_only_a_class_that_is_granted_at_all_can_be(job_class: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        grant(policy(), job_class)
    with pytest.raises(InputError, match="one class"):
        grant(policy(classes=["all"]), None)


@asynccontextmanager
async def fairlead(
    bus: Bus, document: PolicyDocument, jobs: Sequence[Explanation], near: Sequence[str] = ()
) -> AsyncIterator[None]:
    """A policy is in force, and something answers for a scorer."""

    async def answer(asked: Asked) -> bytes:
        name = EXPLAIN_QUESTION.decode(asked.payload).job
        known = [job for job in jobs if name in (job.uid, job.id, "train", f"{job.scope}/train")]
        found = [job for job in known if name != GONE]
        return to_json(ExplainReply(at=to_datetime(0), found=found, near=list(near) or msgspec.UNSET))

    endpoint = await bus.serve(subjects.ask_filter("explain"), answer)
    # The server has answered this connection since, so it knows of the endpoint when another one asks.
    await apply_file(bus, PolicyFile(name="x", policy=document))
    yield
    await endpoint.close()


def grant_to_come() -> dict[str, object]:
    """A grant to a job that is yet to come, by a name that no cluster gives."""
    return {"tenant": "team-a", "classes": ["urgent"], "job": "to-come"}


async def stored(bus: Bus) -> list[Grant]:
    found = await stored_policy(bus)
    assert found is not None
    return found[0].grants


@pytest.mark.integration
async def test_approve_writes_the_policy_and_withdraw_takes_it_back(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [{"tenant": "team-a", "classes": ["urgent"], "job": job} for job in (GONE, "to-come")]
    async with fairlead(bus, policy(grants=given), [a_job()]):
        await approve(nats, ApprovalRequest(job="team-a/train", job_class="urgent", by="ann", why="demo"))
        assert [one.job for one in await stored(bus)] == ["to-come", UID], "a job that is gone needs no grant"
        told = capsys.readouterr().out
        assert "team-a/train is urgent from now on" in told
        assert "runs already" not in told
        await print_history(nats, form="table")
        assert "+ urgent for job team-a/train of team-a, by ann: demo" in capsys.readouterr().out
        await withdraw(nats, ApprovalRequest(job="train"), form="name")
        assert capsys.readouterr().out == "team-a/train\n"
        assert [one.job for one in await stored(bus)] == ["to-come"]
        with pytest.raises(CommandError, match="nothing was granted"):
            await withdraw(nats, ApprovalRequest(job="train"))


@pytest.mark.integration
async def test_who_grants_a_class_to_a_job_that_runs_hears_that_it_counts_only_if_the_job_waits_again(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    running = a_job(phase="running")
    async with fairlead(bus, policy(), [running]):
        await approve(nats, ApprovalRequest(job="train", job_class="urgent"))
    assert "It runs already: its class counts only if it has to wait again." in capsys.readouterr().out


@pytest.mark.integration
async def test_a_policy_put_over_an_approval_tells_it_by_the_name_of_its_job(
    nats: str, bus: Bus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        "version: 1\npools: [{name: gpu, members: [lab/gpu]}]\ntenants: [{name: team-a, weight: 2}]\n"
    )
    async with fairlead(bus, policy(), [a_job()]):
        await approve(nats, ApprovalRequest(job="train", job_class="urgent", by="ann"))
        capsys.readouterr()
        await print_differences(nats, path)
        assert "  urgent for job team-a/train of team-a, by ann" in capsys.readouterr().err.splitlines()
        await print_differences(nats, path, ApplyTerms(exact=True))
        assert "- urgent for job team-a/train of team-a, by ann" in capsys.readouterr().out.splitlines()
        await put_in_force(nats, path)
        assert "  urgent for job team-a/train of team-a, by ann" in capsys.readouterr().out.splitlines()
        await put_in_force(nats, path, ApplyTerms(exact=True))
        told = capsys.readouterr().out.splitlines()
        assert told[:2] == ["approvals taken back:", "  urgent for job team-a/train of team-a, by ann"]
        assert not [line for line in told if "grants[" in line]


@pytest.mark.integration
async def test_a_file_that_is_refused_as_overtaken_hears_nothing_of_approvals_that_stay_anyway(
    nats: str, bus: Bus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    async with fairlead(bus, policy(), [a_job()]):
        await print_policy(nats, form="table")
        path.write_text(capsys.readouterr().out.replace("window: 32", "window: 7"))
        await approve(nats, ApprovalRequest(job="train", job_class="urgent", by="ann"))
        found = await stored_policy(bus)
        assert found is not None
        narrower = msgspec.structs.replace(found[0], window=9)
        await apply_file(bus, PolicyFile(name="x", policy=narrower), ApplyTerms(force=True))
        with pytest.raises(OvertakenError) as refused:
            await put_in_force(nats, path)
    assert refused.value.problems == ["- window: 32", "+ window: 9"]


@pytest.mark.integration
async def test_a_file_of_a_revision_that_is_not_kept_hears_of_jobs_by_their_names(
    nats: str, bus: Bus, tmp_path: Path
) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("# policy revision 99\nunlisted_weight: 1\ntenants: [{name: team-a, weight: 3}]\n")
    async with fairlead(bus, policy(), [a_job()]):
        await approve(nats, ApprovalRequest(job="train", job_class="urgent", by="ann"))
        with pytest.raises(OvertakenError, match="is not kept here") as refused:
            await put_in_force(nats, path, ApplyTerms(exact=True))
    assert "- urgent for job team-a/train of team-a, by ann" in refused.value.problems
    assert UID not in "".join(refused.value.problems)


@pytest.mark.integration
async def test_explain_says_who_granted_a_class_when_and_why(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    job = msgspec.structs.replace(a_job(), approved=granted_by("ann", "demo"))
    async with fairlead(bus, policy(), [job]):
        await approve(nats, ApprovalRequest(job=UID, job_class="urgent", by="ann", why="demo"))
        granted_at = (await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY))[-1].at
        # Another approval since is another revision: the first one's instant counts.
        other = ApprovalRequest(job="train", job_class="approved", by="ann")
        found = await stored_policy(bus)
        assert found is not None
        later = granted(found[0], a_job(UID.replace("ab", "ff")), other)
        await apply_file(bus, PolicyFile(name="x", policy=later))
        capsys.readouterr()
        await show_explanation(nats, UID, tenant=None, form="table")
        since = f"{to_datetime(granted_at):%Y-%m-%d %H:%M} UTC"
        assert f"urgent, granted to it by ann since {since} (demo)" in capsys.readouterr().out
        await show_explanation(nats, UID, tenant=None, form="json")
        [told] = json.loads(capsys.readouterr().out)["found"]
        assert datetime.fromisoformat(told["approved"]["since"]) == to_datetime(granted_at)


@pytest.mark.integration
async def test_a_name_without_the_letters_that_kubernetes_added_is_told_those_that_begin_so(
    nats: str, bus: Bus
) -> None:
    async def answer(asked: Asked) -> bytes:
        near = [f"research/{EXPLAIN_QUESTION.decode(asked.payload).job}-462xw"]
        return to_json(ExplainReply(at=to_datetime(0), found=[], near=near))

    await bus.serve(subjects.ask_filter("explain"), answer)
    with pytest.raises(CommandError, match="nobody knows a job 'fine-tune'") as refused:
        await show_explanation(nats, "fine-tune", tenant=None, form="table")
    assert refused.value.hint == "Names that begin so: research/fine-tune-462xw."


@pytest.mark.integration
async def test_what_somebody_else_writes_meanwhile_is_kept(
    nats: str, bus: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fairlead(bus, policy(), [a_job()]):
        interfering = True

        def meddled(document: PolicyDocument, job: Explanation, approval: ApprovalRequest) -> PolicyDocument:
            nonlocal interfering
            changed = granted(document, job, approval)
            assert document.window == (32 if interfering else 7)
            interfering = False
            return changed

        update = Bucket.update

        async def beaten(self: Bucket, key: str, value: bytes, rev: int, *, by: str) -> int:
            monkeypatch.setattr(Bucket, "update", update)
            await self.put(key, encode_document(policy(window=7)))
            return await update(self, key, value, rev, by=by)

        monkeypatch.setattr(approving, "granted", meddled)
        monkeypatch.setattr(Bucket, "update", beaten)
        await approve(nats, ApprovalRequest(job="train"))
        found = await stored_policy(bus)
        assert found is not None
        assert found[0].window == 7
        assert [one.job for one in found[0].grants] == [UID]


@pytest.mark.integration
async def test_an_ambiguous_an_ended_and_an_unknown_job_are_refused(nats: str, bus: Bus) -> None:
    jobs = [
        a_job(),
        a_job(UID.replace("ab", "cd"), scope="team-b"),
        a_job(UID.replace("ab", "ef"), phase="ended"),
    ]
    async with fairlead(bus, policy(), jobs):
        with pytest.raises(InputError) as ambiguous:
            await approve(nats, ApprovalRequest(job="train"))
        assert len(ambiguous.value.problems) == 2, "the ended one is out"
        assert "say which by its name with the scope, as team-a/" in str(ambiguous.value)
        with pytest.raises(CommandError, match="has ended"):
            await approve(nats, ApprovalRequest(job=jobs[2].uid))
        with pytest.raises(CommandError, match="nobody knows"):
            await approve(nats, ApprovalRequest(job="other"))


@pytest.mark.integration
async def test_who_approves_the_same_twice_hears_since_when_and_makes_no_revision(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    async with fairlead(bus, policy(grants=[grant_to_come()]), [a_job()]):
        await approve(nats, ApprovalRequest(job="train", by="ann", why="demo"))
        first = (await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY))[-1]
        capsys.readouterr()
        await approve(nats, ApprovalRequest(job="train", by="ann"))
        since = f"{to_datetime(first.at):%Y-%m-%d %H:%M} UTC"
        assert capsys.readouterr().out == (
            f"team-a/train was approved already: urgent, granted to it by ann since {since} (demo). Nothing was changed\n"
        )
        last = (await Bucket(bus, topology.POLICY).history(subjects.DOCUMENT_KEY))[-1]
        assert last.seq == first.seq
        await approve(nats, ApprovalRequest(job="train", by="ann"), form="json")
        told = json.loads(capsys.readouterr().out)
        assert (told["written"], told["revision"]) == (False, first.seq)


@pytest.mark.integration
async def test_whose_own_grant_stands_is_not_told_of_a_new_one_where_others_are_dropped(
    nats: str, bus: Bus, capsys: pytest.CaptureFixture[str]
) -> None:
    async with fairlead(bus, policy(), [a_job()]):
        await approve(nats, ApprovalRequest(job="train", by="ann"))
        found = await stored_policy(bus)
        assert found is not None
        dead = Grant(tenant="team-a", classes=["urgent"], job=GONE)
        with_dead = msgspec.structs.replace(found[0], grants=[*found[0].grants, dead])
        await apply_file(bus, PolicyFile(name="x", policy=with_dead), ApplyTerms(force=True))
        capsys.readouterr()
        await approve(nats, ApprovalRequest(job="train", by="ann"))
        told = capsys.readouterr().out
        assert "was approved already" in told
        assert "dropped 1 grant of a job" in told


@pytest.mark.integration
async def test_who_approves_a_job_that_nobody_knows_hears_of_names_that_begin_so(nats: str, bus: Bus) -> None:
    async with fairlead(bus, policy(), [], near=["team-a/train-462xw"]):
        with pytest.raises(CommandError, match="nobody knows a job 'tra'") as refused:
            await approve(nats, ApprovalRequest(job="tra"))
    assert refused.value.hint == "Names that begin so: team-a/train-462xw."
