"""Traces of jobs' lives, one each: real services, a real Jaeger, and each service killed while jobs are on their way."""

import asyncio
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from fairlead_contracts import subjects
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.questions import EXPLAIN_REPLY, ExplainQuestion
from fairlead_testkit import eventually
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, equal_jobs, one_pool, submit_all
from fairlead_testkit.telemetry.jaeger import (
    STAGES,
    FoundTrace,
    Jaeger,
    check_connected,
    traces_of,
    whole_trace,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

GPU = "nvidia.com/gpu"
TENANTS = ("team-a", "team-b")
POLICY = one_pool(TENANTS)
SENT_BY = {
    "submit": "fairlead-admitter",
    "observed": "fairlead-sim",
    "scored": "fairlead-scorer",
    "level": "fairlead-admitter",
    "admitted": "fairlead-admitter",
    "started": "fairlead-sim",
    "ended": "fairlead-sim",
}


async def test_a_job_leaves_one_connected_trace_with_every_stage(tmp_path: Path, jaeger: Jaeger) -> None:
    settings = {"otel_endpoint": jaeger.endpoint, "otel_sample_ratio": 1}
    fleet = Fleet(tmp_path, policy=POLICY, gpus=2, scorers=2, settings=settings)
    async with fleet.running() as bus:
        # Both fill the pool, so that those behind wait and get levels.
        jobs = await submit_all(bus, "team-a", equal_jobs("first", 4, run_seconds=1))
        jobs += await submit_all(bus, "team-b", equal_jobs("second", 4, run_seconds=1))
        await bus.publish(subjects.submit(CLUSTER, "team-a"), b'{"id": "without-a-demand"}')
        traces = await traces_of(bus, CLUSTER, jobs)
        assert len(set(traces.values())) == len(jobs)
        question = to_json(ExplainQuestion(job=jobs[-1]))
        explained = EXPLAIN_REPLY.decode(await bus.request(subjects.ask("explain"), question, timeout=10.0))
        assert [found.trace for found in explained.found] == [traces[jobs[-1]]]
        waited = 0
        for trace_id in traces.values():
            found = await whole_trace(jaeger, trace_id, STAGES - {"level", "scored"})
            check_connected(found)
            waited += found.names() >= STAGES
            for span in found.spans:
                assert found.service(span) == SENT_BY[span.operation_name]
        assert waited >= 2, "those that waited were placed, and got a level"
        await check_pass(jaeger, traces)
        await check_exemplars(jaeger, await fleet.named("admitter")[0].health_port(), set(traces.values()))
        await check_refusal(jaeger)
        found_by_name = jaeger.traces("fairlead-sim", tags={"fairlead.job": jobs[0]})
        assert {found.trace_id for found in found_by_name} == {traces[jobs[0]]}, (
            "as the dashboard Job looks for it"
        )


async def check_exemplars(jaeger: Jaeger, port: int, jobs: set[str]) -> None:
    """Points on the graphs of latencies lead to traces: that of a wait to a job's, that of a reaction to the pass it follows."""
    found = await exemplars(port)
    waited, reacted = (
        found[f"fairlead_admitter_{name}_seconds_bucket"] for name in ("wait", "event_to_level")
    )
    assert waited <= jobs
    for trace_id in waited:
        check_connected(await whole_trace(jaeger, trace_id, STAGES - {"level", "scored"}))
    for trace_id in reacted:
        [passed] = (await whole_trace(jaeger, trace_id, frozenset({"pass"}))).spans
        # It need not have moved a job: an end alone brings the next ones to their levels.
        assert passed.said["fairlead.pool"] == "gpu"
        assert set(passed.links) <= jobs
    assert waited
    assert reacted


async def exemplars(port: int) -> dict[str, set[str]]:
    """The trace ids that a page of metrics names, by series: what Prometheus takes from it."""
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics", headers=accept) as page,
    ):
        families = list(text_string_to_metric_families(await page.text()))  # type: ignore[no-untyped-call] # its own gap
    found: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            if sample.exemplar is not None:
                found.setdefault(sample.name, set()).add(sample.exemplar.labels["trace_id"])
    return found


async def check_refusal(jaeger: Jaeger) -> None:
    """Checks that what was refused has a trace of its own, which says to whom and why."""

    async def found() -> list[FoundTrace]:
        return await asyncio.to_thread(jaeger.traces, "fairlead-admitter", "refuse")

    [refused] = await eventually(found, 30, what="the refusal is told") or []
    [span] = refused.spans
    assert span.parent is None
    assert (span.said["fairlead.submission"], span.said["fairlead.field"]) == ("without-a-demand", "demand")


async def check_pass(jaeger: Jaeger, traces: dict[str, str]) -> None:
    """The stage `scored` names shard and decision, and the pass of that decision is linked to the job."""
    scored = [
        (span, trace_id)
        for trace_id in traces.values()
        if (found := jaeger.trace(trace_id)) is not None
        for span in found.spans
        if span.operation_name == "scored"
    ]
    assert scored
    for span, trace_id in scored:
        assert {"fairlead.shard", "fairlead.epoch", "fairlead.turn", "fairlead.tag"} <= span.said.keys()
        [link] = span.links
        passed = jaeger.trace(link)
        assert passed is not None
        assert trace_id in {linked for one in passed.spans for linked in one.links}


@pytest.mark.chaos
async def test_a_kill_of_each_service_in_turn_leaves_one_story(tmp_path: Path, jaeger: Jaeger) -> None:
    settings = {"otel_endpoint": jaeger.endpoint, "otel_sample_ratio": 1}
    fleet = Fleet(tmp_path, policy=POLICY, gpus=2, scorers=1, settings=settings)
    async with fleet.running() as bus:
        jobs: list[str] = []
        for name, service in list(fleet.services.items()):
            jobs += await submit_all(bus, "team-a", equal_jobs(f"before-{name}", 3, run_seconds=0.5))
            service.kill()
            jobs += await submit_all(bus, "team-b", equal_jobs(f"during-{name}", 2, run_seconds=0.5))
            await service.start().ready()
            jobs += await submit_all(bus, "team-a", equal_jobs(f"after-{name}", 2, run_seconds=0.5))
        traces = await traces_of(bus, CLUSTER, jobs)
        for trace_id in traces.values():
            found = await whole_trace(jaeger, trace_id, STAGES - {"level", "scored"})
            check_connected(found)
            assert len({span.span_id for span in found.spans if span.operation_name == "started"}) == 1
        takeovers = jaeger.traces("fairlead-scorer", "take over")
        assert takeovers, "a shard that changed hands is told in a trace of its own"
