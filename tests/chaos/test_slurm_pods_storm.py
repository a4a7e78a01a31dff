"""Slurm jobs that run as pods, while all that stands between the two is killed at random, and jobs are cancelled and requeued.

All jobs end, no pod, claim or token of theirs is left, and none ran twice at a time. No program begins again unless somebody put
its job back. None is held and no node drained; but for one reason, which is Slurm's own, where
the hook is killed that would have kept it from that: a slurmctld that was killed sends a node a job that it has, and drains it.
Such a node the bridge brings back.
FAIRLEAD_CHAOS_SECONDS sets how long it blows (`make chaos`: 300), FAIRLEAD_CHAOS_SEED what is broken when; where CI=true is set, it
is the same plan in every run.
"""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_testkit.chaos.chaos_load import blow, storm, worked_off
from fairlead_testkit.chaos.pod_chaos_load import ENDS_WITH, PodBreaker, PodLoad
from fairlead_testkit.chaos.pod_watch import watched
from fairlead_testkit.fleets.pod_fleet import PodFleet, PodFleetSite
from fairlead_testkit.kubelab import KubeLab
from fairlead_testkit.timing.awaiting import NeverHappenedError, eventually

SECONDS, SEED = storm(10, repeated_in_ci=True)

pytestmark = [
    pytest.mark.kube,
    pytest.mark.slurm,
    pytest.mark.chaos,
    pytest.mark.timeout(int(10 * SECONDS) + 600),
]

GPUS = 8
TOKENS = "fairlead_gpu@fairlead"


@pytest.fixture
def site(kube_lab: KubeLab, slurm_programs: None) -> Iterator[PodFleetSite]:
    del slurm_programs
    with PodFleetSite(kube_lab, gpus=GPUS, tokens=TOKENS).running() as found:
        yield found


async def test_a_storm_over_jobs_that_run_as_pods(site: PodFleetSite, tmp_path: Path) -> None:
    print(f"storm of {SECONDS} s, seed {SEED}")  # noqa: T201 # repeats the plan of a failure
    rng = random.Random(SEED)
    load = PodLoad(site, random.Random(rng.random()), per_second=2)
    fleet = PodFleet(tmp_path, site, settings={"pods_resume_nodes": True})
    async with fleet.running(), watched(site, daemons_killed=True) as watch:
        breaker = PodBreaker(fleet, site, load, random.Random(rng.random()))
        await blow(load, breaker, SECONDS)
        print(f"{len(load.jobs)} jobs, {dict(breaker.done)}")  # noqa: T201 # as above
        await all_end(site)
        await eventually(
            lambda: not site.pods() and not site.claims(), 60, what="no pod and no claim is left"
        )
        await eventually(lambda: site.licence() == (GPUS, 0), 90, what="no job holds a token any more")
        ends_are_the_pods_own(site, fleet, breaker)
        again = {job for (job, _), pods in watch.began.items() if len(pods) > 1}
        unasked = sorted(again - breaker.taken_back - breaker.requeued)
        begun = f"{len(watch.began)} programs began, {len(again)} more than once; nobody sent back {unasked}"
        print(begun)  # noqa: T201 # as above
        print(f"{watch.forgotten} times Slurm drained a node over a job that it had forgotten")  # noqa: T201 # as above
        await eventually(lambda: "drain" not in site.lab.run("sinfo", "-h", "-N", "-o", "%T"), 60, what="no node is drained")  # fmt: skip
    assert watch.harm == []
    assert unasked == [], "\n".join(f"{site.story(job)}\n{fleet.story(job)}" for job in unasked)
    assert 0 < watch.most_gpus <= GPUS


async def all_end(site: PodFleetSite) -> None:
    try:
        await worked_off(site.waiting, "ends", 60)
    except NeverHappenedError as error:
        for line in site.waiting()[:1]:
            error.add_note(site.story(line.split()[0]))
        raise


def ends_are_the_pods_own(site: PodFleetSite, fleet: PodFleet, breaker: PodBreaker) -> None:
    """Checks the ends of jobs that nobody took back: they are their pods' own."""
    lines = [line.split() for line in site.lab.jobs("%i %j %T", "--states=all")]
    ends = {job: (name, *site.state(job)) for job, name, _ in lines if job not in breaker.taken_back}
    print(dict(Counter(ends.values())))  # noqa: T201 # as above
    allowed = {(f"{ENDS_WITH}0", "COMPLETED", "0:0"), (f"{ENDS_WITH}3", "FAILED", "3:0")}
    odd = [f"{site.story(job)}\n{fleet.story(job)}" for job, end in ends.items() if end not in allowed]
    assert odd == [], "\n".join(odd)
