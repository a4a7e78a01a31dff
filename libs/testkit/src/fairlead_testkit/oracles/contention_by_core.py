"""The core that orders real pools, as the order of a simulated one (see `contention`)."""

from collections.abc import Iterator, Mapping

from fairlead_contracts.base.instants import Micros
from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_testkit.oracles.contention import ByFormula, ContendingJob
from fairlead_testkit.oracles.waiting import THE_QUEUE, a_waiting_job

SLOTS = "nvidia.com/gpu"


class ByCore:
    """The order by the core; the pool's slots are the only resource of its rules, in base units."""

    def __init__(self, rules: PoolRules) -> None:
        self.core = PoolFacts(rules)
        self._jobs: dict[str, ContendingJob] = {}

    def wait(self, job: ContendingJob) -> None:
        """Adds a waiting job."""
        self._jobs[job.uid] = job
        self.core.wait(
            a_waiting_job(job.uid, tenant=job.tenant, submitted=job.submitted, demand=demand(job.size))
        )

    def start(self, job: ContendingJob) -> None:
        """Starts the waiting job."""
        self.core.run(job.uid, job.tenant, demand(job.size))

    def end(self, job: ContendingJob) -> None:
        """Ends the running job."""
        self.core.forget(job.uid)
        del self._jobs[job.uid]

    def in_order(self, now: Micros) -> Iterator[ContendingJob]:
        """The waiting jobs, heads first: the whole order is asked for where somebody looks beyond it."""
        heads = self.core.at(now).queue_heads(1).get(THE_QUEUE)
        if not heads:
            return
        yield self._jobs[heads[0].uid]
        for uid in self.core.at(now).uids()[1:]:
            yield self._jobs[uid]


class CoreBesideFormula:
    """The core's order, held to the formula's at each look.

    Args:
        core: the order that counts.
        formula: the order that the core's has to be.
    """

    def __init__(self, core: ByCore, formula: ByFormula) -> None:
        self._both = core, formula

    def wait(self, job: ContendingJob) -> None:
        """Adds a waiting job."""
        for one in self._both:
            one.wait(job)

    def start(self, job: ContendingJob) -> None:
        """Starts the waiting job."""
        for one in self._both:
            one.start(job)

    def end(self, job: ContendingJob) -> None:
        """Ends the running job."""
        for one in self._both:
            one.end(job)

    def in_order(self, now: Micros) -> Iterator[ContendingJob]:
        """The waiting jobs in order, as long as both orders name the same."""
        for mine, defined in zip(*(one.in_order(now) for one in self._both), strict=True):
            if mine != defined:
                raise AssertionError(f"the core starts {mine}, the definition {defined}")
            yield mine


def demand(slots: int) -> Mapping[str, int]:
    """Slots in base units: thousandths."""
    return {SLOTS: 1000 * slots}
