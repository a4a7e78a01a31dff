"""The scorer as the process that it is: readiness, dry run, marks, policies that come, change and go wrong."""

import asyncio
import subprocess
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import bucket_stream
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_packed
from fairlead_contracts.policyfile.document import PolicyDocument, Pool, Tenant
from fairlead_contracts.topology import POLICY
from fairlead_scorer import ScorerSettings, main
from fairlead_testkit import NatsServer, ServiceProcess, eventually
from fairlead_testkit.by_hand.bus_harness import BusHarness, serving
from fairlead_testkit.inputs.builders import a_document, a_job, a_mark, a_pool, a_queue

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


@pytest.fixture
async def harness(nats_server: NatsServer, tmp_path: Path) -> AsyncIterator[BusHarness]:
    async with BusHarness.open(nats_server, tmp_path) as opened:
        await opened.state(a_pool(), a_queue(), a_job("a"), a_job("b", scope="team-b"))
        yield opened


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as reply:  # noqa: S310 # our own server on loopback
        text: str = reply.read().decode()
    return text


async def metrics(process: ServiceProcess) -> dict[str, float]:
    port = await process.health_port()
    lines = (await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/metrics")).splitlines()
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines if not line.startswith("#"))
    }


async def test_without_a_policy_it_waits_and_says_so_then_scores_and_ends_cleanly(
    harness: BusHarness,
) -> None:
    await harness.mark()
    with harness.process("scorer", "s1") as scorer:
        await eventually(lambda: _only_policy_is_missing(scorer), 60)
        await harness.policy(a_document())
        await scorer.ready()
        await harness.settled()

        async def counted() -> bool:
            return (await metrics(scorer))["fairlead_scorer_owned_shards"] == 16

        await eventually(counted, what="the pass behind the claims has recorded them")
        found = await metrics(scorer)
        assert found['fairlead_scorer_waiting_jobs{pool="c1/gpu"}'] == 2
        assert found["fairlead_scorer_claims_total"] == 16
        assert await scorer.stop() == 0
    await eventually(lambda: harness.owners() == {}, what="the lease is given back")


async def test_without_jetstream_it_says_that_this_is_why_it_knows_nothing(tmp_path: Path) -> None:
    config = "accounts { free { users: [{ user: a, password: a }] } }\nno_auth_user: a"
    with NatsServer(tmp_path, config=config) as server:
        settings = ScorerSettings(nats_url=server.url, health_port=-1, route=False)
        async with serving(main, settings, "s1") as scorer:
            await eventually(
                lambda: (
                    sum("JetStream not enabled" in why for why in scorer.readiness.reasons().values()) == 2
                ),
                what="state and policy say so",
            )


async def _only_policy_is_missing(scorer: ServiceProcess) -> bool:
    return set((await scorer.health()).reasons) == {"policy"}


async def test_a_dry_run_says_what_it_would_publish_and_owns_and_publishes_nothing(
    harness: BusHarness,
) -> None:
    await harness.policy(a_document())
    await harness.mark()
    with harness.process("scorer", "dry", dry_run=True) as scorer:
        await scorer.ready()

        def said() -> set[str]:
            lines = [line for line in scorer.events() if line["event"] == "would publish"]
            return {str(line["shard"]) for line in lines}

        await eventually(lambda: len(said()) == 16, 60)
        assert harness.shards() == []
        assert harness.owners() == {}


async def test_a_missing_or_stale_mark_withholds_the_order(harness: BusHarness) -> None:
    await harness.policy(a_document())
    await harness.state(a_mark(incarnation="another server"))
    with harness.process("scorer", "s1") as scorer:
        line = await scorer.logged("order withheld")
        assert (line["pool"], line["clusters"]) == ("c1/gpu", ["c1"])
        assert harness.shards() == []
        await harness.mark()
        await harness.settled()


async def test_a_pool_of_two_clusters_waits_for_both(harness: BusHarness) -> None:
    await harness.policy(
        PolicyDocument(
            tenants=[Tenant(name="team-a"), Tenant(name="team-b")],
            pools=[Pool(name="both", members=["c1/gpu", "c2/gpu"])],
        )
    )
    await harness.mark("c1")
    async with harness.serving(main, ScorerSettings, "s1"):
        await harness.state(a_pool(cluster="c2"), a_queue(cluster="c2"), a_job("c", cluster="c2", uid="c"))
        await eventually(lambda: harness.members.values)
        assert harness.shards("both") == []
        await harness.mark("c2")
        await harness.settled("both")
        assert harness.shards("both")[0].revision.keys() == {"c1", "c2"}


async def test_a_new_policy_is_scored_by_and_a_bad_one_is_refused_and_changes_nothing(
    harness: BusHarness,
) -> None:
    await harness.policy(a_document())
    await harness.mark()
    with harness.process("scorer", "s1") as scorer:
        await harness.settled()
        bad = b'{"tenants": [{"name": "team-a", "weight": -1}], "shards": 0}'
        await harness.bus.publish(subjects.kv_subject(POLICY, subjects.DOCUMENT_KEY), bad)
        line = await scorer.logged("policy refused: the last revision that validates holds")
        assert "shards" in str(line["why"])
        assert "weight" in str(line["why"])
        await scorer.ready()
        await harness.state(a_job("c"))
        await harness.settled()
        await harness.policy(PolicyDocument(tenants=[Tenant(name="team-b", weight=9.0)], window=1, shards=4))
        await eventually(
            lambda: {d.basis and d.basis.policy for d in harness.shards()[:4]} == {harness.revision}
        )


async def test_a_scorer_that_starts_takes_the_last_revision_that_validates_and_says_so(
    harness: BusHarness,
) -> None:
    await harness.policy(a_document())
    await harness.mark()
    document = subjects.kv_subject(POLICY, subjects.DOCUMENT_KEY)
    for bad in (b"\xff\xfe", b"", b'{"version": 7}'):
        await harness.bus.publish(document, bad)
    last = await harness.bus.publish(document, b'{"tenants": [], "shards": 0}')
    with harness.process("scorer", "s1") as scorer:
        line = await scorer.logged("policy refused: the last revision that validates holds")
        assert (line["revision"], line["holds"]) == (last.seq, harness.revision)
        await harness.settled()
        assert {d.basis and d.basis.policy for d in harness.shards()} == {harness.revision}


async def test_a_decision_that_somebody_else_wrote_over_is_decided_anew(harness: BusHarness) -> None:
    await harness.policy(a_document())
    await harness.mark()
    async with harness.serving(main, ScorerSettings, "s1"):
        await harness.settled()
        at = {number: subjects.decision("c1/gpu", number) for number in range(3)}
        forged = msgspec.structs.replace(harness.decisions.values[at[0]], owner="forger", epoch=2**50)
        await harness.bus.publish(at[0], to_packed(forged))
        await harness.bus.publish(at[1], b"x")
        last = await harness.bus.publish(at[2], b"", headers={"Fairlead-Op": "DEL"})

        def decided_anew() -> bool:
            found = [harness.decisions.values.get(subject) for subject in at.values()]
            return all(one is not None and last.seq < one.epoch < 2**50 for one in found)

        await eventually(decided_anew, on=harness.changed)
        await harness.settled()


async def test_a_replica_that_finds_no_valid_policy_takes_no_shards_from_one_that_decides(
    harness: BusHarness,
) -> None:
    await harness.policy(a_document())
    await harness.mark()
    with harness.process("scorer", "s1") as first:
        await harness.settled()
        # Nothing that validates is kept any more: who has read it goes on by it.
        document = subjects.kv_subject(POLICY, subjects.DOCUMENT_KEY)
        await harness.bus.jetstream.call(f"STREAM.PURGE.{bucket_stream(POLICY)}", {"filter": document})
        await harness.bus.publish(document, b'{"shards": 0}')
        await first.logged("policy refused: the last revision that validates holds")
        with harness.process("scorer", "s2") as second:
            await eventually(lambda: _only_policy_is_missing(second), 60)
            await harness.state(a_job("c"))
            await harness.settled()
            assert {lease.replica for lease in harness.members.values.values()} == {"s1"}
            await harness.policy(a_document())
            await harness.owned_by("s1", "s2")


def test_the_command_line_documents_its_settings() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "fairlead_scorer", "--help"], capture_output=True, text=True, check=True
    )
    for flag in ("--dry-run", "--pace-seconds", "--answer-seconds", "--step-down-seconds", "--no-route"):
        assert flag in told.stdout
