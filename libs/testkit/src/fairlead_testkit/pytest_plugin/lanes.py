"""Lanes of a test run with several workers (pytest-xdist): what waits runs beside what computes; part of the plugin.

Most tests of real processes wait: for a lease to end, for Kueue's next batch, for a process to come up. Property tests
compute without a pause. Side by side they fill two cores, if as many compute as there are cores; but a test of a real Kueue
must not wait for its share of a core. So each worker has a lane of its own:

- `kube`: tests of the lab. Every worker of this lane starts one lab, for all of its tests.
- `processes`: other tests with real processes.
- `hermetic`: all others, by workers that give way to the others (nice).

A worker whose own lane is empty goes on with the next one: no core idles at the end. It collects the files of its lanes
alone: to read all 5,000 tests takes four seconds of CPU, in each worker. A file is never split over two workers, so that
the fixtures of a module are made once; the longest begin first, lest one of them is all that runs in the last minutes.
"""

import os
import re
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from fairlead_testkit.pytest_plugin.kits import KitBuilding, KitName, named_in

type LaneName = str
ALL = KUBE, PROCESSES, HERMETIC = "kube", "processes", "hermetic"
PLANS: dict[int, tuple[tuple[LaneName, ...], ...]] = {
    2: ((KUBE, PROCESSES, HERMETIC), (HERMETIC,)),
    3: ((KUBE, PROCESSES, HERMETIC), (PROCESSES, HERMETIC), (HERMETIC,)),
    4: ((KUBE, PROCESSES, HERMETIC), (KUBE, PROCESSES, HERMETIC), (PROCESSES, HERMETIC), (HERMETIC,)),
    5: (*(3 * ((KUBE, PROCESSES),)), (PROCESSES,), (HERMETIC, PROCESSES)),
    6: (*(3 * ((KUBE, PROCESSES),)), (PROCESSES,), *(2 * ((HERMETIC, PROCESSES),))),
    7: (*(3 * ((KUBE, PROCESSES),)), (PROCESSES, KUBE), (PROCESSES,), *(2 * ((HERMETIC, PROCESSES),))),
}
"""Lanes of each worker, in the order in which it takes from them, by the number of workers (`-n`). With five and more, what
is left of the processes fills the cores at the end."""
NICENESS = 5
"""Niceness of a hermetic worker: of a core that somebody else wants, it gets a quarter. Less would let its tests run
into their time limits on a machine that is busy for long."""
LONGEST = (
    "test_slurm_pod_life.py",
    "test_slurm_pods.py",
    "test_kustomize.py",
    "test_kueue_fairness.py",
    "test_kueue_order.py",
    "test_kueue_storm.py",
    "test_slurm_order.py",
    "test_fairness_live.py",
    "test_nats_cluster.py",
    "test_weights_live.py",
    "test_traces.py",
    "test_monitoring.py",
    "test_tenant_accounts.py",
    "test_bytes.py",
    "test_architecture_names.py",
)
"""Files of the folder `tests` that last longest: it comes last. Of each lane they begin first, in this order."""
_LANE = "fairlead_lanes"
_MARK = re.compile(r"pytest\.mark\.(kube|slurm|integration|container|chaos)\b")
_LEAST_AHEAD = 2
"""Tests that a worker has to know: it starts one when it knows the one after (whose fixtures it may keep)."""


def lane_of(source: str) -> LaneName:
    """The lane of a test file: that of its most demanding test."""
    marks = set(_MARK.findall(source))
    if "kube" in marks:
        return KUBE
    return PROCESSES if marks else HERMETIC


def configure(config: pytest.Config) -> None:
    """Share the work, in the process that controls workers; give way, in a worker that begins with hermetic tests."""
    if own_lanes(config)[:1] == [HERMETIC]:
        os.nice(NICENESS)
    elif config.pluginmanager.hasplugin("xdist") and getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(LanesPlugin())


def own_lanes(config: pytest.Config) -> list[LaneName]:
    """The lanes of this worker; empty where there are none, or this is no worker."""
    told: str = getattr(config, "workerinput", {}).get(_LANE, "")
    return told.split(",") if told else []


def is_anothers(path: Path, config: pytest.Config) -> bool:
    """Whether a file holds tests that this worker never takes."""
    lanes = own_lanes(config)
    if not lanes or len(lanes) == len(ALL) or path.suffix != ".py" or not path.name.startswith("test_"):
        return False
    return lane_of(path.read_text()) not in lanes


class Gateway(Protocol):
    """The way to a worker (`execnet`)."""

    id: str
    """Name of the worker: `gw0`, `gw1` and so on."""


class XdistWorker(Protocol):
    """The used part of a worker (`xdist.workermanage.WorkerController`, which ships no types)."""

    config: pytest.Config
    gateway: Gateway
    workerinput: dict[str, object]
    shutting_down: bool

    def send_runtest_some(self, indices: Sequence[int]) -> None:
        """Queue tests, by their numbers in the worker's own collection."""

    def shutdown(self) -> None:
        """Tell the worker that nothing more comes."""


class LanesPlugin:
    """The hooks of pytest-xdist, for the controlling process."""

    def pytest_configure_node(self, node: XdistWorker) -> None:
        """Tell a worker its lanes."""
        node.workerinput[_LANE] = ",".join(lanes_of(node))

    def pytest_xdist_make_scheduler(self, config: pytest.Config) -> "LaneScheduling | None":
        """Schedules by lanes, where there is a plan for so many workers."""
        return LaneScheduling(config) if config.option.numprocesses in PLANS else None


def lanes_of(node: XdistWorker) -> tuple[LaneName, ...]:
    """The lanes of a worker, by its number; a replacement of one that crashed takes from all."""
    plan = PLANS.get(node.config.option.numprocesses, ())
    number = int(node.gateway.id.removeprefix("gw"))
    return plan[number] if number < len(plan) else ALL


class LaneScheduling:
    """Gives whole files to workers, each from its own lanes (`xdist.scheduler.Scheduling`)."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        """Other plugins look here: that of second tries, when a worker crashes."""
        self._expected: int = config.option.numprocesses
        self._collections: dict[XdistWorker, list[str]] = {}
        self._queues: dict[LaneName, deque[list[str]]] | None = None
        self._given: dict[XdistWorker, dict[str, None]] = {}
        """Tests that each worker was given and has not finished, in its order."""
        self._files: dict[str, tuple[LaneName, frozenset[KitName]]] = {}
        """The lane of each file that was looked at, and the kits that it may want."""
        self._kits = KitBuilding()

    @property
    def nodes(self) -> list[XdistWorker]:
        """Workers that live."""
        return list(self._given)

    @property
    def collection_is_completed(self) -> bool:
        """Whether all workers that were started have said what they found; stays so when some of them have ended."""
        return self._queues is not None or len(self._collections) >= self._expected

    @property
    def tests_finished(self) -> bool:
        """Whether workers may be told to end: nothing is left to give, and each is at its last test."""
        return (
            self._queues is not None
            and not any(self._queues.values())
            and all(len(given) < _LEAST_AHEAD for given in self._given.values())
        )

    @property
    def has_pending(self) -> bool:
        """Whether any test is left."""
        return any((self._queues or {}).values()) or any(self._given.values())

    def add_node(self, node: XdistWorker) -> None:
        """Takes in a worker that has started."""
        self._given[node] = {}

    def add_node_collection(self, node: XdistWorker, collection: Sequence[str]) -> None:
        """Takes in what a worker has found."""
        self._collections[node] = list(collection)

    def schedule(self) -> None:
        """Begin, or go on with a worker that came later.

        Raises:
            pytest.UsageError: the workers found different tests.
        """
        if self._queues is None:
            tests = list(dict.fromkeys(test for found in self._collections.values() for test in found))
            for node, found in self._collections.items():
                self._check_found(found, tests, lanes_of(node))
            self._queues = self._sorted(tests)
            self._kits.begin(kit for _, kits in self._files.values() for kit in kits)
            if (session := self.config.pluginmanager.get_plugin("session")) is not None:
                session.testscollected = len(tests)  # xdist takes those of one worker for all
        for node in self.nodes:
            self._fill(node)

    def _check_found(self, found: Sequence[str], tests: Sequence[str], lanes: Sequence[LaneName]) -> None:
        """Check that a worker found all tests of its lanes, those of each lane in the order of the others."""
        for lane in lanes:
            mine, all_of_them = (
                [test for test in some if self._lane(test) == lane] for some in (found, tests)
            )
            if mine != all_of_them:
                different = sorted(set(mine).symmetric_difference(all_of_them))
                raise pytest.UsageError(f"the workers found different tests: {different[:20]}")

    def mark_test_complete(self, node: XdistWorker, item_index: int, duration: float = 0) -> None:
        """Takes in that a worker has finished a test."""
        del duration  # xdist's protocol has it
        self._given[node].pop(self._collections[node][item_index], None)
        self._fill(node)

    def mark_test_pending(self, item: str) -> None:
        """Refuse: nobody here asks for a test to be given anew.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(item)

    def remove_pending_tests_from_node(self, node: XdistWorker, indices: Sequence[int]) -> None:
        """Refuse: nobody here takes tests back.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(node, indices)

    def remove_node(self, node: XdistWorker) -> str | None:
        """Takes in that a worker is gone; gives the test that it died in, and puts back what it had not begun."""
        left = list(self._given.pop(node))
        self._collections.pop(node, None)
        if not left:
            return None
        died, *rest = left
        if rest and self._queues is not None:
            self._queues[self._lane(rest[0])].appendleft(rest)
            for other in self.nodes:
                self._fill(other)
        return died

    def _fill(self, node: XdistWorker) -> None:
        """Give a worker enough to go on with, or tell it that nothing more comes."""
        if node.shutting_down or node not in self._collections:
            return
        given, known = self._given[node], self._collections[node]
        while len(given) < _LEAST_AHEAD:
            tests = self._next(lanes_of(node))
            if tests is None:
                node.shutdown()
                return
            given.update(dict.fromkeys(tests))
            node.send_runtest_some([known.index(test) for test in tests])

    def _next(self, lanes: Sequence[LaneName]) -> list[str] | None:
        """Takes the next file of these lanes that lacks no kit; where all do, the next one: its worker waits for the kit."""
        queues = [queue for lane in lanes if (queue := (self._queues or {}).get(lane))]
        for queue in queues:
            for place, tests in enumerate(queue):
                if not self._kits.lacks(self._look(tests[0])[1]):
                    del queue[place]
                    return tests
        return queues[0].popleft() if queues else None

    def _sorted(self, tests: Sequence[str]) -> dict[LaneName, deque[list[str]]]:
        """Tests by lane and file: the longest, then as collected: scenarios of the top folder `tests` last, when less runs beside."""
        files: dict[str, list[str]] = {}
        for test in tests:
            files.setdefault(test.partition("::")[0], []).append(test)
        queues: dict[LaneName, deque[list[str]]] = {lane: deque() for lane in ALL}
        for file in sorted(files, key=_turn):
            queues[self._lane(file)].append(files[file])
        return queues

    def _lane(self, test: str) -> LaneName:
        return self._look(test)[0]

    def _look(self, test: str) -> tuple[LaneName, frozenset[KitName]]:
        file = test.partition("::")[0]
        if file not in self._files:
            source = (self.config.rootpath / file).read_text()
            self._files[file] = lane_of(source), named_in(source)
        return self._files[file]


def _turn(file: str) -> int:
    """A file's place among the longest; behind them for all others."""
    name = file.rpartition("/")[2]
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)
