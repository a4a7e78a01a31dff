"""A whole Fairlead beside a real Slurm: slurm-bridge, scorers and admitter as processes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from fairlead_bus import Bus
from fairlead_contracts.policyfile.document import Aging, PolicyDocument
from fairlead_testkit.by_hand.people import give_leave
from fairlead_testkit.fleets.fleet import whole_queue
from fairlead_testkit.fleets.process_fleet import ProcessFleet
from fairlead_testkit.inputs.builders import a_weighted_policy
from fairlead_testkit.slurmlab import CLUSTER, SlurmLab
from fairlead_testkit.timing.awaiting import eventually

POOL = "gpus"
"""The policy's name for the pool of the partition `gpu`."""
POLL_SECONDS = 0.3


class SlurmFleet(ProcessFleet):
    """A nats-server, and the services that serve one lab.

    Args:
        bridges: number of bridges, each with a store of its own; one leads.
        submit_socket: socket of the helper that submits; without it no submission becomes a job.
        by_rest: whether the bridge asks the lab's slurmrestd, with a token that the helper makes.
    """

    def __init__(
        self,
        directory: Path,
        lab: SlurmLab,
        *,
        policy: PolicyDocument,
        bridges: int = 1,
        submit_socket: Path | None = None,
        by_rest: bool = False,
    ) -> None:
        counts = {"slurm_bridge": bridges, "scorer": 1, "admitter": 1}
        super().__init__(directory, cluster=CLUSTER, policy=policy, counts=counts)
        self.lab = lab
        self.token = directory / "slurm-token"
        self._submit_socket = submit_socket
        self._by_rest = by_rest

    async def prepare(self, bus: Bus) -> None:
        """Prepares the fleet, with the leave to steer."""
        await super().prepare(bus)
        await give_leave(bus, "site-factor", cluster=CLUSTER)

    def own_settings(self, service: str) -> Mapping[str, object]:
        """Adds to the base's: the bridge is told where Slurm is."""
        own = dict(super().own_settings(service))
        if service == "slurm_bridge":
            own |= {
                "slurm_conf": self.lab.conf,
                "store": self.directory / f"slurm-bridge-{len(self.named(service)) + 1}.db",
                "poll_seconds": POLL_SECONDS,
                "submit_socket": self._submit_socket,
            }
        if service == "slurm_bridge" and self._by_rest:
            own |= {
                "slurmrestd": f"http://127.0.0.1:{self.lab.ports.slurmrestd}",
                "slurm_token": self.token,
            }
        return own


def account_policy(weights: Mapping[str, float], **more: object) -> PolicyDocument:
    """A policy for accounts by weight, without aging: jobs that were submitted within a second would differ by chance."""
    return a_weighted_policy(weights, POOL, f"{CLUSTER}/gpu", aging=Aging(entitlement_per_day=0.0), **more)


def filled(
    waiting: Sequence[tuple[str, str]], holds: Counter[str], weights: Mapping[str, float]
) -> list[str]:
    """Names in the order of progressive filling, by a judge that has no code of ours.

    By weighted DRF on one resource the next job is that of the account with the least use over its weight.

    Args:
        waiting: (name, account), first come first, all of one size.
        holds: number of holds of each account, in that size.
    """
    queues = {name: [job for job, account in waiting if account == name] for name in weights}
    came = {job: place for place, (job, _) in enumerate(waiting)}
    use = Counter(holds)
    order = []
    while any(queues.values()):
        account = min(
            (name for name in weights if queues[name]),
            key=lambda name: (use[name] / weights[name], came[queues[name][0]]),
        )
        order.append(queues[account].pop(0))
        use[account] += 1
    return order


async def wanted_order(bus: Bus) -> list[str]:
    """The ids of all that waits, as the scorers order it."""
    found = await whole_queue(bus, POOL)
    return [] if found.silent_shards else [one.position.id for one in found.positions]


def slurm_order(lab: SlurmLab) -> list[str]:
    """The ids of what waits and is eligible, by Slurm's own priority."""
    return list(_priorities(lab))


def _priorities(lab: SlurmLab) -> dict[str, int]:
    lines = [line.split() for line in lab.jobs("%i %Q", "--states=PENDING", "--sort=-p,i")]
    return {name: int(priority) for name, priority in lines if int(priority) > 0}


async def order_stands(bus: Bus, lab: SlurmLab, first: int, waiting: int | None = None) -> list[str]:
    """Wait until the first so many jobs are the same by Slurm's priority as by the scorers; returns all, in that order."""

    async def stands() -> list[str]:
        wanted = await wanted_order(bus)
        complete = waiting is None or len(wanted) == waiting
        head = wanted[:first]
        return wanted if complete and head and stands_first(lab, head) else []

    return await eventually(stands, 60, what="Slurm's priorities follow the order")


def stands_first(lab: SlurmLab, head: Sequence[str]) -> bool:
    """Whether these stand first by priorities that differ: amid a write, jobs without a level tie and stand by number."""
    priorities = _priorities(lab)
    values = list(priorities.values())[: len(head) + 1]
    return list(priorities)[: len(head)] == list(head) and all(a > b for a, b in pairwise(values))
