"""The states of a submission's id: any messages in any order, to a real nats-server, an admitter and a simulated cluster.

What each message is answered in each state stands in docs/submitting.md; `EXPECTED` is that table. Several messages may be
sent at once: those of one id are answered in the order in which they were sent.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from fairlead_admitter.app import main as admitter
from fairlead_admitter.settings import AdmitterSettings
from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.server.provision import provision
from fairlead_contracts import topology
from fairlead_contracts.messages.state import Outcome
from fairlead_contracts.messages.submissions import Accepted, AnyAnswer, Cancelling, Ended, Refused
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_sim.app import main as sim
from fairlead_sim.settings import SimSettings
from fairlead_testkit import NatsServer, eventually
from fairlead_testkit.by_hand.people import hear_answers, put_policy, submit
from fairlead_testkit.inputs.builders import a_cancellation, a_document
from fairlead_testkit.inputs.cases import cases

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

CLUSTER, TENANT = "sim", "team-a"
_SECONDS = 15.0

type MessageKind = Literal["long", "other", "faulty", "cancel", "faulty cancel"]
BODIES: dict[MessageKind, dict[str, object]] = {
    "long": {"demand": {"nvidia.com/gpu": 1}, "run_seconds": 3600},
    "other": {"demand": {"nvidia.com/gpu": 2}, "run_seconds": 3600},
    "faulty": {"demand": {"nvidia.com/gpu": 1}, "pods": 0},
    "cancel": {"cancel": True},
    "faulty cancel": {"cancel": True, "pods": 2},
}
SHORT: dict[str, object] = {"demand": {"nvidia.com/gpu": 1}, "run_seconds": 0.05}

type IdState = Literal["free", "long", "other", "short", "cancelled long", "cancelled other"]
"""`long` and `other`: a job of that body waits or runs. `short`: its job ended by itself."""


def outcome(state: IdState, sent: MessageKind) -> tuple[str, IdState]:
    """The first answer in state, as `word_of` writes it, and the state that follows."""
    match state, sent:
        case _, "faulty" | "faulty cancel":
            return "refused", state
        case "free", "long" | "other":
            return "accepted", sent
        case "long" | "other", "cancel":
            return "cancelling", "cancelled long" if state == "long" else "cancelled other"
        case ("long", "long") | ("other", "other"):
            return "alive, repeated", state
        case ("cancelled long", "long" | "cancel") | ("cancelled other", "other" | "cancel"):
            return "cancelled, repeated", state
        case _:
            return "refused", state


def word_of(answer: AnyAnswer) -> str | None:
    """One word for an answer; None for what a frontend adds in its own time: starts, and ends that are told first."""
    match answer:
        case Refused():
            return "refused"
        case Ended() | Cancelling() if answer.repeated is True:
            return "cancelled, repeated"
        case Cancelling():
            return "cancelling"
        case _ if answer.repeated is True:
            return "alive, repeated"
        case Accepted():
            return "accepted"
        case _:
            return None


class IdStack:
    """A simulated cluster, its admitter and a sender, in a loop of their own."""

    def __init__(self, url: str, directory: Path) -> None:
        self._url, self._directory = url, directory
        self._loop = asyncio.new_event_loop()
        self._tasks: list[tuple[Lifecycle, asyncio.Task[None]]] = []
        self._admitters = 0
        self._ended = asyncio.Event()
        self.answers: defaultdict[str, list[AnyAnswer]] = defaultdict(list)
        self.bus: Bus

    @classmethod
    @contextmanager
    def up(cls, url: str, directory: Path) -> Iterator["IdStack"]:
        """A stack that runs while the block lasts."""
        stack = cls(url, directory)
        thread = threading.Thread(target=stack._loop.run_forever)
        thread.start()
        ready = threading.Event()
        served = asyncio.run_coroutine_threadsafe(stack._serve(ready), stack._loop)
        try:
            while not ready.wait(0.1):
                assert not served.done(), served.exception()
            yield stack
        finally:
            stack._loop.call_soon_threadsafe(stack._ended.set)
            served.result(30)
            stack._loop.call_soon_threadsafe(stack._loop.stop)
            thread.join()
            stack._loop.close()

    def do[T](self, what: Coroutine[Any, Any, T]) -> T:
        """Do it in the stack's loop."""
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(60)

    async def _serve(self, ready: threading.Event) -> None:
        async with connect(ConnectionSettings(url=self._url), name="test") as self.bus:
            await provision(self.bus, topology.topology([CLUSTER]))
            await put_policy(self.bus, a_document(shards=1))
            stop = await hear_answers(self.bus, lambda answer: self.answers[answer.id].append(answer))
            store = str(self._directory / "sim.sqlite")
            sim_settings = SimSettings(nats_url=self._url, cluster=CLUSTER, store=store)
            life = Lifecycle("sim", "sim")
            self._tasks.append((life, asyncio.create_task(sim(sim_settings, life))))
            await self._admit()
            ready.set()
            await self._ended.wait()
            for _ in range(2):
                await self._stop_last()
            await stop()

    async def change_admitters(self) -> None:
        """Another admitter leads from now on."""
        await self._stop_last()
        await self._admit()

    async def _admit(self) -> None:
        self._admitters += 1
        life = Lifecycle("admitter", f"admitter-{self._admitters}")
        given = msgspec.convert(
            {"cluster": CLUSTER, "nats_url": self._url, "tick_seconds": 0.2}, AdmitterSettings
        )
        self._tasks.append((life, asyncio.create_task(admitter(given, life))))

    async def _stop_last(self) -> None:
        life, task = self._tasks.pop()
        life.ask_stop("another one leads")
        await task

    async def send(self, name: str, body: dict[str, object]) -> None:
        """Publish a body under an id."""
        await submit(self.bus, msgspec.json.encode({"id": name, **body}), tenant=TENANT, cluster=CLUSTER)


class IdMachine(RuleBasedStateMachine):
    """Any messages under three ids, which no other case uses."""

    stack: IdStack
    machines = 0

    def __init__(self) -> None:
        super().__init__()
        IdMachine.machines += 1
        self._states: dict[str, IdState] = dict.fromkeys(
            (f"m{IdMachine.machines}-{number}" for number in range(3)), "free"
        )
        self._expected: defaultdict[str, list[str]] = defaultdict(list)

    @rule(
        messages=st.lists(st.tuples(st.integers(0, 2), st.sampled_from(list(BODIES))), min_size=1, max_size=6)
    )
    def send(self, messages: list[tuple[int, MessageKind]]) -> None:
        names = list(self._states)
        for number, kind in messages:
            name = names[number]
            word, self._states[name] = outcome(self._states[name], kind)
            self._expected[name].append(word)
        self.stack.do(self._send([(names[number], BODIES[kind]) for number, kind in messages]))
        self.stack.do(self._hear())

    @rule(number=st.integers(0, 2))
    def run_to_its_end(self, number: int) -> None:
        name = list(self._states)[number]
        if self._states[name] != "free":
            return
        self._states[name] = "short"
        self._expected[name].append("accepted")
        self.stack.do(self._send([(name, SHORT)]))
        self.stack.do(self._hear())

    @rule()
    def change_admitters(self) -> None:
        self.stack.do(self.stack.change_admitters())

    def teardown(self) -> None:
        """Make room for the jobs of other cases."""
        alive = [name for name, state in self._states.items() if state in ("long", "other")]
        self.stack.do(self._send([(name, BODIES["cancel"]) for name in alive]))

    async def _send(self, bodies: list[tuple[str, dict[str, object]]]) -> None:
        for name, body in bodies:
            await self.stack.send(name, body)

    async def _hear(self) -> None:
        for name, state in self._states.items():
            await eventually(partial(self._answered, name), _SECONDS, what=f"answers to {name}, {state}")
            assert self._words(name) == self._expected[name], state
            if state not in ("long", "other", "free"):
                await eventually(partial(self._over, name), _SECONDS, what=f"the end of {name}, {state}")
            ends = {"short": [Outcome.SUCCEEDED], "free": [], "long": [], "other": []}
            assert self._ends(name) == ends.get(state, [Outcome.CANCELLED])

    def _answered(self, name: str) -> bool:
        return len(self._words(name)) >= len(self._expected[name])

    def _over(self, name: str) -> bool:
        return bool(self._ends(name))

    def _words(self, name: str) -> list[str]:
        return [word for answer in self.stack.answers[name] if (word := word_of(answer)) is not None]

    def _ends(self, name: str) -> list[Outcome]:
        found = self.stack.answers[name]
        return [one.outcome for one in found if isinstance(one, Ended) and one.repeated is not True]


def test_each_message_is_answered_as_the_state_of_its_id_says(
    nats_server: NatsServer, tmp_path: Path
) -> None:
    assert a_cancellation("x") == msgspec.json.encode({"id": "x", **BODIES["cancel"]})
    with IdStack.up(nats_server.url, tmp_path) as stack:
        IdMachine.stack = stack
        run_state_machine_as_test(
            IdMachine,
            settings=settings(
                max_examples=min(cases(0.4), 300),  # each takes a second
                stateful_step_count=8,
                deadline=None,
                suppress_health_check=[HealthCheck.too_slow],
            ),
        )
