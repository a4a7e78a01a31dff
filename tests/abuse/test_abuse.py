"""A hostile tenant beside a neighbour, under the shipped accounts: mutated messages over every subject that it may reach.

FAIRLEAD_ABUSE_MESSAGES sets how many (`make abuse`: a million), FAIRLEAD_ABUSE_FIRST the number of the first: a message is
made of its number. They go in runs, and after each all is looked at. What a run broke is then broken again on a fresh fleet
by ever fewer of its messages, and the failure names those.

How long the neighbour waits is taken before each run and during it, by turns, so that what the machine does besides weighs
on both. The neighbour comes at random: at a steady beat it would meet the flood's own beat always, or never.
"""

import asyncio
import contextlib
import itertools
import os
import random
import statistics
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from fairlead_bus import Bus, ConnectionSettings, RetryableBusError, connect
from fairlead_bus.streams.bucket import bucket_stream
from fairlead_contracts import subjects, topology
from fairlead_contracts.messages.state import STATE, State
from fairlead_contracts.messages.submissions import Accepted, AnyAnswer
from fairlead_testkit.by_hand.people import hear_answers
from fairlead_testkit.chaos.audit import made_in, simulated_jobs
from fairlead_testkit.chaos.intruder import NEIGHBOUR, TENANT, a_mutant
from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, one_pool
from fairlead_testkit.timing.awaiting import eventually
from fairlead_testkit.timing.in_hand import no_garbage_collected

MESSAGES = int(os.environ.get("FAIRLEAD_ABUSE_MESSAGES", "3000"))
FIRST = int(os.environ.get("FAIRLEAD_ABUSE_FIRST", "0"))
A_SECOND = float(os.environ.get("FAIRLEAD_ABUSE_A_SECOND", "1000"))
"""Messages of the flood a second: a thousand take a third of two cores. Twice as many fill them, and a bare echo over
the same server takes 2.3 times as long, too: they would tell of the cores, not of what one tenant has to do with
another."""
LEAST_OF_RATE = 0.9
"""Least part of its rate that the flood must reach: else the neighbour's wait beside it tells nothing."""
RUN = 20_000
FEW = 20
"""Submissions that wait although all others were handled: the neighbour's own."""
LONG = 100_000
"""Number of messages from which on the neighbour's p99 is judged: a few samples say little of it."""
MOST_OF_QUIET = 2.0
QUIET_SECONDS, SAMPLES_A_SECOND = 6.0 if MESSAGES >= LONG else 1.0, 40.0

pytestmark = [pytest.mark.integration, pytest.mark.timeout(int(MESSAGES / 200) + 300)]

POLICY = one_pool([TENANT, NEIGHBOUR])


class MeasuredNeighbour:
    """Submits from its own account, hears its own answers there, and takes the time."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.sent: dict[str, float] = {}
        self.heard: dict[str, list[tuple[float, AnyAnswer]]] = {}
        self.changed = asyncio.Event()

    async def listen(self) -> None:
        """Hears all that is said to it."""

        def take(answer: AnyAnswer) -> None:
            self.heard.setdefault(answer.id, []).append((time.monotonic(), answer))
            self.changed.set()

        await hear_answers(self._bus, take, NEIGHBOUR)

    async def submit(self) -> None:
        """Submits one more job."""
        name = f"n-{len(self.sent) + 1}"
        self.sent[name] = time.monotonic()
        body = {"id": name, "demand": {"nvidia.com/gpu": 1}, "run_seconds": 0.05}
        await self._bus.publish(subjects.submit(CLUSTER, NEIGHBOUR), msgspec.json.encode(body), timeout=30)

    async def waits(self, names: list[str]) -> list[float]:
        """Seconds from each submission to its first answer, once there is one of each."""
        await eventually(lambda: all(name in self.heard for name in names), 300, what="each is answered")
        for name in names:
            assert isinstance(self.heard[name][0][1], Accepted), self.heard[name]
        return [self.heard[name][0][0] - self.sent[name] for name in names]


def p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100, method="inclusive")[98]


async def submit_until(neighbour: MeasuredNeighbour, over: asyncio.Event) -> list[float]:
    """Submits at random until it is over, whether or not what was submitted before is stored by then; returns the waits."""
    before, due = len(neighbour.sent), time.monotonic()
    beat = random.Random(before)
    async with asyncio.TaskGroup() as group:
        while not over.is_set():
            group.create_task(neighbour.submit())
            due += beat.expovariate(SAMPLES_A_SECOND)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
    return await neighbour.waits(list(neighbour.sent)[before:])


async def quiet(neighbour: MeasuredNeighbour) -> list[float]:
    over = asyncio.Event()
    asyncio.get_running_loop().call_later(QUIET_SECONDS, over.set)
    return await submit_until(neighbour, over)


def _stated(state: State) -> State:
    """The content of a state. Its owner may state it again at any time, under another stamp."""
    return msgspec.structs.replace(state, epoch=0, rev=0)


async def told[T](call: Callable[[], Awaitable[T]]) -> T:
    """The server's answer; a machine that is busy with the abuse makes it late, which is no fault."""
    async with asyncio.timeout(300):
        while True:
            with contextlib.suppress(RetryableBusError):
                return await call()


async def info_of(bus: Bus, verb: str) -> dict[str, Any]:
    return dict(msgspec.json.decode(await told(lambda: bus.jetstream.call(verb))))


async def standing(bus: Bus) -> dict[str, object]:
    """Messages that are not the hostile tenant's, and that nobody else changes meanwhile."""
    found: dict[str, object] = {}
    for stream, subject in (
        (bucket_stream(topology.POLICY), "$KV.policy.>"),
        (topology.STATE, f"fairlead.v1.state.{CLUSTER}.tenant.>"),
        (topology.STATE, f"fairlead.v1.state.{CLUSTER}.queue.>"),
        (topology.STATE, f"fairlead.v1.state.{CLUSTER}.pool.>"),
        (topology.STATE, f"fairlead.v1.state.{CLUSTER}.node.>"),
    ):
        seq = 1
        while (one := await told(partial(bus.jetstream.next_of, stream, subject, seq))) is not None:
            found[f"{one.subject} {one.seq if stream != topology.STATE else ''}"] = (
                one.payload if stream != topology.STATE else _stated(STATE.decode(one.payload))
            )
            seq = one.seq + 1
    for spec in topology.topology([CLUSTER]).streams:
        info = await info_of(bus, f"STREAM.INFO.{spec.name}")
        found[f"stream {spec.name}"] = (info["created"], info["config"])
        found[f"durables of {spec.name}"] = sorted(
            name
            for name in (await info_of(bus, f"CONSUMER.NAMES.{spec.name}"))["consumers"] or ()
            if name.startswith(("submit-", "answers-"))
        )
    return found


class Flood:
    """A range of messages in a process of their own, made and not sent yet."""

    def __init__(self, sender: Process, count: int) -> None:
        self._sender = sender
        self._count = count

    @classmethod
    async def of(cls, fleet: Fleet, numbers: range) -> Self:
        """Returns when they are made."""
        who = fleet.person(f"tenant.{TENANT}")
        words = (
            who["FAIRLEAD_NATS_URL"],
            who["FAIRLEAD_NATS_NKEY_SEED"],
            numbers.start,
            len(numbers),
            A_SECOND,
        )
        module = "fairlead_testkit.chaos.intruder"
        sender = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, *map(str, words), stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        assert sender.stdout is not None
        assert await sender.stdout.readline() == b"ready\n"
        return cls(sender, len(numbers))

    async def send(self) -> float:
        """Returns when all are sent: how many a second."""
        said, wrong = await self._sender.communicate(b"go\n")
        assert self._sender.returncode == 0, wrong.decode()
        denied, seconds = said.split()
        assert int(denied) > 0, "the server denied some of it"
        return self._count / float(seconds)


async def taken_in(bus: Bus) -> None:
    """Returns once nothing waits to be taken in: a run is over when it was handled, however slow the machine is."""

    async def nothing_waits() -> bool:
        info = await info_of(bus, f"STREAM.INFO.{topology.SUBMIT}")
        return bool(info["state"]["messages"] <= FEW)

    await eventually(nothing_waits, 900, what="what was sent is handled")


async def check(fleet: Fleet, bus: Bus, before: dict[str, object], numbers: range) -> None:
    """Every service stands and is ready, none has a fault in its log, and nothing of others has changed."""
    where = f"broken by one of the messages {numbers.start} to {numbers.stop - 1} (FAIRLEAD_ABUSE_FIRST)"
    for service in fleet.services.values():
        assert service.running, f"{service.name} died: {where}"
        assert "Traceback" not in service.log, f"{service.name}: {where}"
        failed = [event["error"] for event in service.events() if event.get("event") == "worker.failed"]
        assert not failed, f"{service.name} could not handle {failed[:3]}: {where}"
        await service.ready()
    assert await standing(bus) == before, where


def a_fleet(folder: Path) -> Fleet:
    return Fleet(
        folder,
        policy=POLICY,
        gpus=8,
        nodes=4,
        scorers=1,
        settings={"tenant_waiting_jobs": 500, "tenant_submits_burst": 2000, "tenant_submits_per_second": 50},
    )


async def breaks(folder: Path, numbers: range) -> bool:
    """Whether these messages alone break a fresh fleet."""
    fleet = a_fleet(folder)
    async with fleet.running() as bus:
        before = await standing(bus)
        await (await Flood.of(fleet, numbers)).send()
        try:
            await taken_in(bus)
            await check(fleet, bus, before, numbers)
        except (AssertionError, TimeoutError):
            return True
    return False


async def smallest(numbers: range, broken_by: Callable[[range], Awaitable[bool]]) -> range:
    """The shortest run of messages that is found to break something: by halves, then from both ends."""
    while len(numbers) > 1:
        half = len(numbers) // 2
        if await broken_by(numbers[:half]):
            numbers = numbers[:half]
        elif await broken_by(numbers[half:]):
            numbers = numbers[half:]
        else:
            break
    step = len(numbers) // 4
    while step:
        if await broken_by(numbers[step:]):
            numbers = numbers[step:]
        elif await broken_by(numbers[:-step]):
            numbers = numbers[:-step]
        else:
            step //= 2
        step = min(step, len(numbers) - 1)
    return numbers


async def check_and_shrink(
    fleet: Fleet, bus: Bus, before: dict[str, object], numbers: range, folder: Path
) -> None:
    """Fails with the fewest messages that break a fresh fleet; with all, where a fresh one stands them."""
    try:
        await check(fleet, bus, before, numbers)
    except (AssertionError, TimeoutError) as error:
        tries = itertools.count()

        async def broken_by(part: range) -> bool:
            fresh = folder / f"shrink-{next(tries)}"
            fresh.mkdir()
            return await breaks(fresh, part)

        found = await smallest(numbers, broken_by)
        text = f"messages {found.start} to {found.stop - 1} break it: FAIRLEAD_ABUSE_FIRST={found.start} FAIRLEAD_ABUSE_MESSAGES={len(found)}"
        raise AssertionError(text) from error


async def test_a_hostile_tenant_stops_spoofs_and_starves_nobody(tmp_path: Path) -> None:
    fleet = a_fleet(tmp_path)
    async with fleet.running() as bus:
        who = fleet.person(f"tenant.{NEIGHBOUR}")
        own = ConnectionSettings(url=who["FAIRLEAD_NATS_URL"], nkey_seed=who["FAIRLEAD_NATS_NKEY_SEED"])
        async with connect(own, name=NEIGHBOUR) as neighbours:
            neighbour = MeasuredNeighbour(neighbours)
            await neighbour.listen()
            await quiet(neighbour)  # all is warm
            before = await standing(bus)
            waits_quiet: list[float] = []
            waits: list[float] = []
            rates: list[float] = []
            for first in range(FIRST, FIRST + MESSAGES, RUN):
                numbers = range(first, min(first + RUN, FIRST + MESSAGES))
                flood = await Flood.of(fleet, numbers)
                with no_garbage_collected():
                    waits_quiet += await quiet(neighbour)
                    over = asyncio.Event()
                    async with asyncio.TaskGroup() as group:
                        submitting = group.create_task(submit_until(neighbour, over))
                        rates.append(await flood.send())
                        over.set()
                waits += submitting.result()
                await taken_in(bus)
                await check_and_shrink(fleet, bus, before, numbers, tmp_path)
                sys.stdout.write(f"\n{numbers.stop}: p99 {p99(submitting.result()) * 1e3:.1f} ms")
            ratio = told_ratio(waits_quiet, waits, rates)
            await nothing_of_others(fleet, bus, neighbour)
    if MESSAGES >= LONG:
        assert min(rates) >= LEAST_OF_RATE * A_SECOND, "the flood came too slowly to tell"
        assert ratio <= MOST_OF_QUIET


def told_ratio(waits_quiet: list[float], waits: list[float], rates: list[float]) -> float:
    """The neighbour's p99 beside the flood over its quiet one, which is said before anything else can fail."""
    ratio = p99(waits) / p99(waits_quiet)
    sys.stdout.write(
        f"\n{MESSAGES} messages, {min(rates):.0f} to {max(rates):.0f} a second; the neighbour's p99: {p99(waits) * 1e3:.1f} ms of "
        f"{len(waits)} submissions, quiet {p99(waits_quiet) * 1e3:.1f} ms of {len(waits_quiet)}: {ratio:.2f} of it; medians "
        f"{statistics.median(waits) * 1e3:.1f} and {statistics.median(waits_quiet) * 1e3:.1f}\n"
    )
    return ratio


async def nothing_of_others(fleet: Fleet, bus: Bus, neighbour: MeasuredNeighbour) -> None:
    """The neighbour has the jobs that it asked for and no others, and heard of nothing else."""
    assert sorted(made_in(fleet.store, NEIGHBOUR)) == sorted(neighbour.sent)
    own = [job for job in simulated_jobs(fleet.store) if job.scope == NEIGHBOUR]
    assert {str(job.demand) for job in own} == {"{'nvidia.com/gpu': 1000}"}
    assert set(neighbour.heard) == set(neighbour.sent)
    dead = msgspec.json.decode(
        await bus.jetstream.call(f"STREAM.INFO.{topology.DEAD}", {"subjects_filter": ">"})
    )
    assert all(TENANT in subject or ".long." in subject for subject in dead["state"].get("subjects") or ())


@pytest.mark.parametrize(
    ("guilty", "found"),
    [({500}, range(500, 501)), ({17, 940}, range(17, 941)), ({3, 4}, range(3, 5)), ({0}, range(1))],
)
async def test_a_failure_shrinks_to_the_messages_that_make_it(guilty: set[int], found: range) -> None:
    async def broken_by(numbers: range) -> bool:
        return guilty <= set(numbers)

    assert await smallest(range(2000), broken_by) == found


def test_a_message_is_made_of_its_number() -> None:
    assert [a_mutant(number) for number in range(300)] == [a_mutant(number) for number in range(300)]
    made = [a_mutant(number) for number in range(3000)]
    assert len({mutant.subject for mutant in made}) > 100
    assert sum(b"fairlead.v1.submit.sim.mallory" in mutant.subject for mutant in made) > 500
    assert all(b" " not in mutant.subject and b"\r" not in mutant.subject for mutant in made)
