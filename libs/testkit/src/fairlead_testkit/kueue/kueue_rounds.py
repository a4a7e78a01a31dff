"""Releases on a real Kueue with a backlog, and of each admission which job of the order it was.

Nobody waits for an order to stand: a job ends whenever its time has come.
"""

import asyncio
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_testkit.kubelab import GPU, things
from fairlead_testkit.kueue.admissions import AdmissionLog
from fairlead_testkit.kueue.namespace_fixture import NamespaceFixture
from fairlead_testkit.kueue.placements import PlacedAdmission, PlacementReplay, QuotaNode
from fairlead_testkit.oracles.oracle import OracleRules
from fairlead_testkit.timing.awaiting import eventually

QUICK = (0.3, 1.6)


@dataclass(frozen=True, kw_only=True)
class QuotaLayout:
    """ClusterQueues and Cohorts of GPUs, and whose jobs enter where."""

    nodes: Mapping[str, QuotaNode]
    """Queues and cohorts by short name; a ClusterQueue is one that tenants enter."""
    tenants: Mapping[str, str]
    """ClusterQueue of each tenant, by short names."""
    strategy: str = "BestEffortFIFO"
    spec: Mapping[str, object] = field(default_factory=dict)
    """Further fields of the ClusterQueues' specs."""
    sizes: Sequence[int] = (1,)
    """GPUs that a job asks for, each as likely as the others."""

    @property
    def gpus(self) -> int:
        """GPUs of all nodes together."""
        return sum(node.nominal for node in self.nodes.values())

    def make(self, fixture: NamespaceFixture) -> str:
        """Make the queues and cohorts; gives the name of the pool."""
        entered = set(self.tenants.values())
        for name, node in self.nodes.items():
            if name not in entered:
                parent = {"parentName": fixture.named(node.parent)} if node.parent else {}
                fixture.cohort(name, node.nominal or None, **parent)
        for name in sorted(entered):
            node = self.nodes[name]
            limits = {"borrowingLimit": node.borrowing, "lendingLimit": node.lending}
            fixture.queue(
                name,
                node.nominal,
                tenants=[tenant for tenant, queue in self.tenants.items() if queue == name],
                cohort=node.parent or None,
                strategy=self.strategy,
                limits={key: value for key, value in limits.items() if value is not None},
                **self.spec,  # type: ignore[arg-type] # passed on
            )
        root = min(entered)
        while self.nodes[root].parent:
            root = self.nodes[root].parent
        return fixture.named(root)


class Rounds:
    """A backlog on a layout, its releases and arrivals, and the judge of its admissions."""

    def __init__(self, fixture: NamespaceFixture, log: AdmissionLog, layout: QuotaLayout) -> None:
        self._fixture = fixture
        self._log = log
        self._layout = layout
        self._random = random.Random(1)  # noqa: S311 # no secret
        self._made = 0
        self._since = 0.0

    def backlog(self, each: int) -> None:
        """Makes so many jobs of each tenant, one tenant after the other; the first, of one GPU each, fill the pool."""
        for tenant in self._layout.tenants:
            for _ in range(each):
                self.arrive(tenant, gpus=1 if self._made < self._layout.gpus else None)
        self._log.wait(self._layout.gpus)

    def arrive(self, tenant: str | None = None, *, gpus: int | None = None, **more: object) -> str:
        """Adds a job, of any tenant and size where none is named; gives its name."""
        tenant = tenant or self._random.choice(sorted(self._layout.tenants))
        gpus = gpus or self._random.choice(self._layout.sizes)
        self._made += 1
        name = f"{tenant}-{self._made}"
        self._fixture.workload(tenant, name, gpus, **more)
        return name

    def release(self, units: int = 1) -> None:
        """Ends some jobs that run, one right after the other."""
        running = sorted(self._fixture.admitted().items())
        for name, item in self._random.sample(running, min(units, len(running))):
            self._fixture.finish(self._fixture.tenant_of(item), name)

    async def play(
        self, releases: int, *, units: int = 1, rest: tuple[float, float] = QUICK, arrivals: bool = True
    ) -> None:
        """Releases at random times, and as many arrivals between them; whatever was admitted meanwhile.

        Args:
            units: number of jobs that end at a time.
            rest: the shortest and the longest time between two, in seconds.
            arrivals: whether a job comes for each that ends.
        """
        self._since = self._since or time.monotonic()
        for _ in range(releases):
            self.release(units)
            pause = self._random.uniform(*rest)
            before = self._random.uniform(0, pause)
            await asyncio.sleep(before)
            for _ in range(units if arrivals else 0):
                self.arrive()
            await asyncio.sleep(pause - before)

    async def settle(self) -> None:
        """Wait until the pool is full again, but for what the largest job leaves free."""
        least = self._layout.gpus - max(self._layout.sizes) + 1

        def full() -> bool:
            return sum(things.gpus(item) for item in self._fixture.admitted().values()) >= least

        await eventually(full, 60, what="nothing is free")

    def placements(self, policy: PolicyDocument, *, reaction: float = 0.1) -> list[PlacedAdmission]:
        """The admissions since the first release."""
        fixture, layout = self._fixture, self._layout
        replay = PlacementReplay(
            rules=OracleRules.of(policy, {GPU: layout.gpus}),
            nodes=layout.nodes,
            queues={fixture.namespaces[tenant]: queue for tenant, queue in layout.tenants.items()},
            reaction=reaction,
        )
        found: Sequence[PlacedAdmission] = replay.replay(list(self._log.glimpses))
        return [placement for placement in found if placement.at >= self._since]
