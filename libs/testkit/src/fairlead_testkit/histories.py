"""Any history of a pool's jobs, for state machines: what is kept up is compared with what is made from scratch."""

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from fairlead_policy.order.pool_facts import PoolFacts
from fairlead_policy.rules.jobs import WaitingJob
from fairlead_policy.rules.pool_rules import PoolRules

TENANTS = ("ada", "bob", "cyd")
CLASSES = ("urgent", "normal")

uids = st.integers(0, 9).map(lambda number: f"u{number}")
tenants = st.sampled_from(TENANTS)
demands = st.dictionaries(
    st.sampled_from(("cpu", "gpu", "tpu")), st.sampled_from([0, 1, 2, 2**62]), max_size=2
)
jobs = st.builds(
    WaitingJob,
    uid=uids,
    scope=st.just("s"),
    id=st.just("j"),
    tenant=tenants,
    job_class=st.sampled_from(CLASSES),
    submitted=st.integers(0, 9),
    demand=demands,
    queue=st.sampled_from([("c", "q1"), ("c", "q2")]),
    override=st.sampled_from([None, None, None, 2.0]),
)


class PoolHistory(RuleBasedStateMachine):
    """Jobs come, change, come again and go.

    A machine adds what else may happen, and says in `from_scratch` how the last facts alone make an order.

    Args:
        rules: that the pool begins with.
    """

    def __init__(self, rules: PoolRules) -> None:
        super().__init__()
        self.current = rules
        self.kept = PoolFacts(rules)
        self.waiting: dict[str, WaitingJob] = {}
        self.running: dict[str, tuple[str, dict[str, int]]] = {}

    def from_scratch(self) -> PoolFacts:
        """The order that the facts give by themselves."""
        raise NotImplementedError

    def it_ran(self, uid: str) -> None:
        """Ends whatever ran under the uid."""

    def it_runs(self, uid: str, tenant: str, demand: dict[str, int]) -> None:
        """A run begins now."""

    def adopt(self, changed: PoolRules) -> None:
        """The pool has other rules from now on."""
        self.kept.set_rules(changed)
        self.current = changed

    @rule(job=jobs)
    def a_job_waits(self, job: WaitingJob) -> None:
        """Lets a job wait, also one that waits or runs already."""
        self.kept.wait(job)
        self.it_ran(job.uid)
        self.running.pop(job.uid, None)
        self.waiting[job.uid] = job

    @rule(many=st.lists(jobs, min_size=17, max_size=30))
    def many_jobs_wait_at_once(self, many: list[WaitingJob]) -> None:
        """More than a lane scores at first."""
        for number, job in enumerate(many):
            self.a_job_waits(msgspec.structs.replace(job, uid=f"{job.uid}-{number}"))

    @rule()
    def all_that_wait_go(self) -> None:
        """The pool is as good as empty."""
        for uid in list(self.waiting):
            self.a_job_goes(uid)

    @rule(uid=uids, tenant=tenants, demand=demands)
    def a_job_runs(self, uid: str, tenant: str, demand: dict[str, int]) -> None:
        """Whether it was seen to wait or not."""
        self.kept.run(uid, tenant, demand)
        self.it_ran(uid)
        self.it_runs(uid, tenant, demand)
        self.waiting.pop(uid, None)
        self.running[uid] = (tenant, demand)

    @rule(uid=uids)
    def a_waiting_job_starts(self, uid: str) -> None:
        """Starts a waiting job, as most do."""
        job = self.waiting.get(uid)
        if job is not None:
            self.a_job_runs(uid, job.tenant, job.demand)

    @rule(uid=uids)
    def a_job_goes(self, uid: str) -> None:
        """One that nobody knows, too."""
        self.kept.forget(uid)
        self.it_ran(uid)
        self.waiting.pop(uid, None)
        self.running.pop(uid, None)

    @invariant()
    def it_is_as_from_scratch(self) -> None:
        """Compares with an order made from scratch, to the byte."""
        fresh = self.from_scratch()
        now = 12
        whole = self.kept.at(now).places()[:]
        assert msgspec.msgpack.encode(whole) == msgspec.msgpack.encode(fresh.at(now).places()[:])  # noqa: S101 # a test's
        assert self.kept.snapshot.standings() == fresh.snapshot.standings()  # noqa: S101 # as above
        assert self.kept.snapshot.waiting() == fresh.snapshot.waiting()  # noqa: S101 # as above
        assert {place.uid for place in whole} == set(self.waiting)  # noqa: S101 # as above
