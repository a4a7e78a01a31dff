"""`fairlead demo`, from the first process to the report."""

import asyncio
import os
import shlex
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from fairlead_bus import Bus
from fairlead_cli.client.live import Throughput
from fairlead_cli.client.readiness import READY_WITHIN_SECONDS, wait_answering
from fairlead_cli.client.watching import events, hearing
from fairlead_cli.console import say
from fairlead_cli.demo.comparing import compare, facts_of, print_report, report_on, verdict
from fairlead_cli.demo.feeding import publish_workload
from fairlead_cli.demo.flags import DemoFlags, check_writable, read_weights
from fairlead_cli.demo.live_output import follow_one_job, show
from fairlead_cli.demo.recording import Recording
from fairlead_cli.demo.report.contents import ExplainedJob, made_in_words
from fairlead_cli.errors import CommandError, InputError
from fairlead_cli.local.stack import Stack, StackPlan, child_environment, running
from fairlead_cli.policy.files import PolicyFile
from fairlead_cli.signals import ending_on_signals, happens
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.instants import to_seconds
from fairlead_contracts.messages.events import AnyEvent
from fairlead_contracts.messages.submissions import ANSWER
from fairlead_sim.config import render_config
from fairlead_sim.demo import demo_workload
from fairlead_sim.errors import SimError
from fairlead_sim.workload import SimWorkload

CLUSTER = "sim"
SECONDS = 60.0
"""Seconds for which the pool is kept busy; with start, drain and report that makes a minute and a half."""
DEADLINE_SECONDS = 105.0
"""Seconds from the start of the command to the report: whatever still runs then is reported as it stands,
within the two minutes promised."""
STARTED_WITHIN_SECONDS = 15.0
"""Seconds of a start beyond which the deadline is put off."""
INTERRUPTED = 130


async def run_demo(flags: DemoFlags) -> int:
    """Run the demo and report on it.

    Returns:
        The exit code: 0 only if every submitted job finished and none was lost.
    """
    began = time.monotonic()
    workload = _workload(flags)
    check_writable(flags.page)
    recording = Recording([job.id for job in workload.jobs])
    with ending_on_signals() as end, tempfile.TemporaryDirectory(prefix="fairlead-demo-") as directory:
        plan = _plan(Path(directory), workload, flags)
        say(f"starting a NATS server, {flags.scorers} scorers, an admitter and a simulated cluster …")
        async with running(plan, say=say) as stack:
            await _ready(stack, end)
            # Where the start takes long, on a busy machine, what follows has its time all the same.
            late = max(0.0, time.monotonic() - began - STARTED_WITHIN_SECONDS)
            told = await _play(stack, workload, recording, end, deadline=began + late + DEADLINE_SECONDS)
            lost = [] if end.is_set() else await _unaccounted(stack.bus, workload, recording)
            restarts = stack.supervisor.restarts
        if end.is_set():
            say("interrupted; nothing is left running")
            return INTERRUPTED
    say("the same jobs under other orders, in virtual time …")
    others = await asyncio.to_thread(compare, workload)
    command = shlex.join(["fairlead", *sys.argv[1:]])
    report = report_on(
        workload,
        recording.result(workload),
        others,
        finished=recording.finished,
        lost=len(lost),
        facts=facts_of(workload, flags, recording, restarts),
        made=made_in_words(datetime.now(UTC), version("fairlead-cli"), command),
        told=told,
        delays=recording.delays(workload),
    )
    print_report(report, flags)
    return verdict(report, recording)


async def _ready(stack: Stack, end: asyncio.Event) -> None:
    lacking = await wait_answering(stack.bus, end, told=say)
    if lacking and not end.is_set():
        raise CommandError(
            f"the services did not get ready within {READY_WITHIN_SECONDS:g} s: {lacking}",
            hint=stack.supervisor.last_words(),
        )


def _workload(flags: DemoFlags) -> SimWorkload:
    try:
        return demo_workload(
            flags.seconds or SECONDS,
            trace=flags.trace,
            weights=read_weights(flags.weights),
            seed=flags.seed,
            cluster=CLUSTER,
        )
    except SimError as error:
        raise InputError(str(error)) from error


def _plan(directory: Path, workload: SimWorkload, flags: DemoFlags) -> StackPlan:
    cluster = directory / "cluster.yaml"
    cluster.write_text(render_config(workload.cluster), encoding="utf-8")
    return StackPlan(
        store=directory,
        policy=PolicyFile(name="the demo's policy", policy=workload.policy),
        scorers=flags.scorers,
        cluster=CLUSTER,
        cluster_file=cluster,
        alone=True,
        environ=child_environment(os.environ),
    )


async def _play(
    stack: Stack, workload: SimWorkload, recording: Recording, end: asyncio.Event, *, deadline: float
) -> ExplainedJob | None:
    """Publish the jobs at their times and show what happens, until all have ended, the deadline or a signal.

    Returns:
        What was said of one of the jobs on the way.
    """
    throughput = Throughput()
    changed = asyncio.Event()

    def take(event: AnyEvent) -> None:
        throughput.take(event)
        recording.take_event(event)
        changed.set()

    answers = hearing(
        stack.bus,
        stream=topology.ANSWER,
        filter=subjects.answer_filter(),
        codec=ANSWER,
        take=recording.take_answer,
    )
    async with answers, events(stack.bus, take), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(publish_workload(stack.bus, workload, cluster=CLUSTER), name="publish"),
            group.create_task(show(stack.bus, workload, recording, throughput), name="show"),
            group.create_task(_set_with(end, changed), name="end"),
        ]
        half = to_seconds(workload.jobs[-1].offset) / 2
        following = group.create_task(follow_one_job(stack.bus, after_seconds=half), name="follow")
        await _until_done(recording, changed, end, deadline=deadline)
        for task in (*tasks, following):
            task.cancel()
    return None if following.cancelled() else following.result()


async def _until_done(
    recording: Recording, changed: asyncio.Event, end: asyncio.Event, *, deadline: float
) -> None:
    """Return when every job has ended or was refused, when a signal came, or at the deadline."""
    while not recording.done and not end.is_set() and (left := deadline - time.monotonic()) > 0:
        changed.clear()
        await happens(changed, within=left)


async def _set_with(end: asyncio.Event, changed: asyncio.Event) -> None:
    await end.wait()
    changed.set()


async def _unaccounted(bus: Bus, workload: SimWorkload, recording: Recording) -> list[str]:
    """Open jobs that the cluster does not know: lost. Those that still wait or run are merely late."""
    still_open = recording.open()
    lost = []
    for job in workload.jobs:
        if job.id in still_open:
            stored = await bus.last(topology.STATE, subjects.state(CLUSTER, "job", job.id, scope=job.tenant))
            if stored is None or not stored.payload:
                lost.append(job.id)
    return lost
