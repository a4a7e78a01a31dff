"""The bridge's loop, and the times at which it reads slurmctld."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from fairlead_bus import Rejected
from fairlead_contracts.base.instants import SECOND
from fairlead_contracts.frontend.verbs import DeleteJob, SetLevel, VerbOutcome
from fairlead_contracts.messages.state import subject_of
from fairlead_runtime.metrics import Metrics
from fairlead_slurm import QueueReading
from fairlead_slurm.errors import RetryableSlurmError, SlurmUnreachableError, UnreadableError
from fairlead_slurm_bridge.bridge import Bridge
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_slurm_bridge.observing import Observer
from fairlead_slurm_bridge.statements.partition_pools import Naming
from fairlead_slurm_bridge.statements.stated_view import StatedView
from fairlead_slurm_bridge.store import SubmissionStore, SubmittedJob
from fairlead_testkit.inputs.builders import a_job
from fairlead_testkit.inputs.slurm_builders import GPU, a_node, a_partition, a_slurm_job, some_settings
from fairlead_testkit.timing.in_hand import beside

AN_HOUR = 3600.0


class Slurmctld:
    """A slurmctld that tells when it was read."""

    def __init__(self, *, busy: int = 0) -> None:
        self.readings = 0
        self.read = asyncio.Event()
        self.quiet = asyncio.Event()
        self._busy = busy

    async def jobs(self) -> QueueReading:
        """Tell another job each time, for the first `busy` readings."""
        self.readings += 1
        self.read.set()
        if self.readings > self._busy:
            self.quiet.set()
        return QueueReading(jobs=[a_slurm_job(str(min(self.readings, self._busy) + 1))], unreadable=0)

    async def nodes(self) -> list[object]:
        return [a_node("n1", "gpu")]

    async def partitions(self) -> list[object]:
        return [a_partition("gpu", is_default=True)]

    async def accounts(self) -> list[object]:
        return []

    async def settings(self) -> object:
        return some_settings()

    async def licences(self) -> list[object]:
        return []


class KilledOnce(Slurmctld):
    """A slurmctld that dies between its answers about nodes and jobs, and comes back."""

    async def jobs(self) -> QueueReading:
        reading = await super().jobs()
        if self.readings == 1:
            raise RetryableSlurmError("slurmctld does not answer")
        return reading


class Away(Slurmctld):
    """A slurmctld that is away for some readings, and said to be in other words each time."""

    async def jobs(self) -> QueueReading:
        reading = await super().jobs()
        if self.readings == 4:
            raise UnreadableError("half a table")
        if self.readings < 7:
            raise SlurmUnreachableError(f"no answer to message {self.readings % 2}")
        return reading


@contextlib.asynccontextmanager
async def reading(
    slurmctld: Slurmctld, store: SubmissionStore, poll_seconds: float = AN_HOUR
) -> AsyncIterator[Bridge]:
    """A bridge once it has read for the first time; its next poll does not come unless told."""
    fake: Any = slurmctld
    view = StatedView("lab", naming=Naming.of(GPU), qos_classes={}, array_window=8)
    instruments = BridgeInstruments(Metrics("slurm-bridge"))
    bridge = Bridge(fake, Observer(fake), view, store, instruments, poll_seconds=poll_seconds)
    async with beside(bridge.run(lambda _: None)), asyncio.timeout(30):
        await slurmctld.read.wait()
        yield bridge


async def test_what_changes_is_read_again_soon_until_nothing_does(store: SubmissionStore) -> None:
    slurmctld = Slurmctld(busy=2)
    async with reading(slurmctld, store):
        await slurmctld.quiet.wait()
    assert slurmctld.readings == 3


async def test_a_hook_has_slurmctld_read_soon_and_once_for_many(store: SubmissionStore) -> None:
    slurmctld = Slurmctld()
    async with reading(slurmctld, store) as bridge:
        for _ in range(2):
            await slurmctld.quiet.wait()
            slurmctld.read.clear()
            for _ in range(50):
                bridge.hint()
            await slurmctld.read.wait()
    # The first reading shows a job that was not known, so that another one follows it soon.
    assert 3 <= slurmctld.readings <= 4


class Cancellable(Slurmctld):
    """A slurmctld with jobs of submissions and others, which notes what is cancelled."""

    cancelled: Sequence[str] = ()

    async def jobs(self) -> QueueReading:
        reading = await super().jobs()
        made = [
            a_slurm_job("11", comment="fairlead=known digest=00"),
            a_slurm_job("12", comment="fairlead=lost digest=00"),
        ]
        return QueueReading(jobs=[*reading.jobs, *made, a_slurm_job("13")], unreadable=0)

    async def cancel(self, jobs: Sequence[str]) -> dict[str, str]:
        self.cancelled = jobs
        return {}


async def test_a_job_is_cancelled_by_its_submission_and_nobody_elses_is(store: SubmissionStore) -> None:
    slurmctld = Cancellable()
    numbers = {"known": "11", "fresh": "14", "reused": "13", "in-doubt": "", "later": "15"}
    for submission, number in numbers.items():
        at = 2.0 if submission == "later" else 1.0
        store.note_asked("vision", submission, SubmittedJob(digest="00", job=number, queue="gpu", at=at))
    names = ("known", "lost", "fresh", "reused", "in-doubt", "nobodys", "13")
    wanted = [
        DeleteJob(scope="vision", id=name, submission=name, before=SECOND) for name in (*names, "later")
    ]
    wanted.append(DeleteJob(scope="speech", id="known", submission="known"))
    async with reading(slurmctld, store) as bridge:
        await slurmctld.quiet.wait()
        replies = [reply.verdict for reply in await bridge.delete(wanted)]
    assert slurmctld.cancelled == ["11", "12", "14"]
    assert replies == [VerbOutcome.DONE] * 3 + [VerbOutcome.GONE] * 4 + [VerbOutcome.LATER, VerbOutcome.GONE]


async def test_before_slurmctld_was_read_no_job_is_said_to_be_gone(store: SubmissionStore) -> None:
    lost = DeleteJob(scope="vision", id="", submission="lost", before=SECOND)
    async with reading(Away(busy=6), store) as bridge:
        with pytest.raises(Rejected, match="was not read since"):
            await bridge.delete([lost])
        with pytest.raises(Rejected, match="was not read since"):
            await bridge.set_levels([SetLevel(scope="vision", id="1", uid="lab-1", level=5)])


async def test_a_bridge_that_takes_over_reads_slurmctld_before_it_says_that_a_job_is_gone(
    store: SubmissionStore,
) -> None:
    """What NATS knows by another first instant is not known here until then."""
    slurmctld = Cancellable()
    lost = DeleteJob(scope="vision", id="", submission="lost", before=SECOND)
    async with reading(slurmctld, store) as bridge:
        await slurmctld.quiet.wait()
        stands = a_job("12", cluster="lab", uid="lab-0000000012-1")
        bridge.taken_over({subject_of(stands): stands})
        with pytest.raises(Rejected, match="was not read since"):
            await bridge.delete([lost])
        slurmctld.read.clear()
        await slurmctld.read.wait()
        [reply] = await bridge.delete([lost])
    assert (reply.verdict, slurmctld.cancelled) == (VerbOutcome.DONE, ["12"])


async def test_a_slurmctld_that_dies_between_its_nodes_and_its_jobs_is_read_when_it_is_back(
    store: SubmissionStore,
) -> None:
    slurmctld = KilledOnce(busy=2)
    async with reading(slurmctld, store) as bridge:
        bridge.hint()
        await slurmctld.quiet.wait()
    assert slurmctld.readings == 3


async def test_each_kind_of_trouble_is_logged_once_however_it_is_worded(store: SubmissionStore) -> None:
    slurmctld = Away(busy=6)
    with capture_logs() as logs:
        async with reading(slurmctld, store, poll_seconds=0.01):
            await slurmctld.quiet.wait()
    told = [(one["event"], one.get("error")) for one in logs]
    assert told == [
        ("slurm_not_read", "no answer to message 1"),
        ("slurm_not_read", "half a table"),
        ("slurm_read_again", None),
    ]


async def test_a_slurmctld_that_is_silent_is_said_to_be_with_why_and_for_how_long() -> None:
    now = 100.0
    slurmctld: Any = KilledOnce()
    observer = Observer(slurmctld, lambda: now)
    assert observer.why_silent(30) == "slurmctld has said nothing for 0 s: no answer yet"
    with pytest.raises(RetryableSlurmError):
        await observer.jobs()
    now = 104.0
    assert observer.why_silent(30) == "slurmctld has said nothing for 4 s: slurmctld does not answer"
    await observer.jobs()
    now = 134.0
    assert observer.why_silent(30) is None
    now = 135.0
    assert observer.why_silent(30) == "slurmctld has said nothing for 31 s: no answer yet"
