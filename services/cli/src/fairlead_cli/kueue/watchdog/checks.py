"""Checks that nobody answers are let through: fail open. It goes by what stands in the cluster alone, not by who leads.

A Workload whose check is `Pending` holds quota and starts nothing. Whoever should answer is dead, paused, or cannot write:
after some time it does not matter which.
"""

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from fairlead_cli.kueue.watchdog.queues import FIELD_MANAGER
from fairlead_contracts.base.instants import Micros, from_seconds, to_datetime
from fairlead_kube.client import KubeClient
from fairlead_kube.errors import KubeError
from fairlead_kube.kinds.objects import holds, instant
from fairlead_kube.kinds.resources import ADMISSION_CHECKS, WORKLOADS
from fairlead_kube.kinds.workloads import Workload
from fairlead_kube.reflector import Key, Reflector

_BY_CHECK = "AdmissionCheck"


class UncheckedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A Workload that waits for checks."""

    version: str
    checks: tuple[str, ...]
    since: Micros


def unanswered(workload: Workload, names: Collection[str]) -> UncheckedWorkload | None:
    """The checks that a Workload waits for; None where it waits for none of them.

    It does with quota and `Pending`; and, out of its queue, with a `Retry` that nobody took back, which keeps it there.
    """
    if workload.holds("Finished") or not workload.active:
        return None
    reserved, evicted = workload.condition("QuotaReserved"), workload.condition("Evicted")
    has_quota = reserved is not None and reserved.status == "True"
    put_back = evicted is not None and evicted.status == "True" and evicted.reason == _BY_CHECK
    open_ones = [
        one
        for one in workload.status.admission_checks or ()
        if one.name in names and one.state == ("Pending" if has_quota and not put_back else "Retry")
    ]
    if not open_ones:
        return None
    since = [instant(one.last_transition_time) for one in open_ones]
    since += [reserved.since] if reserved is not None and has_quota else []
    return UncheckedWorkload(
        version=workload.metadata.resource_version,
        checks=tuple(one.name for one in open_ones),
        since=max(since),
    )


@dataclass(eq=False)
class CheckGuard:
    """Lets through what waits for longer than it should."""

    client: KubeClient
    names: Collection[str]
    """Names of the checks."""
    overdue_seconds: float
    """Longest time that a check may take."""
    say: Callable[[str], None]
    """Takes each line of what was done."""

    def __post_init__(self) -> None:
        self._mirror = Reflector[Workload, UncheckedWorkload](
            self.client, WORKLOADS, project=lambda one: unanswered(one, self.names), wake=asyncio.Event()
        )

    async def run(self, every: float) -> None:
        """Look every so many seconds, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._mirror.run(), name="mirror of workloads")
            while True:
                await self._activate()
                if self._mirror.complete:
                    await self._let_through()
                await asyncio.sleep(every)

    async def _let_through(self) -> None:
        self._mirror.take()
        by = from_seconds(time.time() - self.overdue_seconds)
        for key, found in list(self._mirror.values.items()):
            if found.since > by:
                continue
            try:
                await self.client.apply(
                    WORKLOADS, key.name, self._ready(key, found), key.namespace,
                    field_manager=FIELD_MANAGER, subresource="status",
                )  # fmt: skip
            except KubeError as error:
                self.say(f"{key.namespace}/{key.name}: {error}")  # tried again at the next look
            else:
                self.say(f"{key.namespace}/{key.name}: let through, as nobody answered its check")

    def _ready(self, key: Key, found: UncheckedWorkload) -> dict[str, object]:
        """The `Ready` answers for exactly this version of the Workload: where somebody else answers meanwhile, theirs counts."""
        message = f"Nobody answered for {self.overdue_seconds:g} s since {to_datetime(found.since):%H:%M:%SZ}: let through unchecked by the watchdog."
        states = [
            {"name": name, "state": "Ready", "message": message, "lastTransitionTime": _now()}
            for name in found.checks
        ]
        return {
            "metadata": {"namespace": key.namespace, "resourceVersion": found.version},
            "status": {"admissionChecks": states},
        }

    async def _activate(self) -> None:
        """Claims the checks that nobody claimed: an unclaimed one stops every queue that names it."""
        for name in self.names:
            try:
                found = await self.client.get(ADMISSION_CHECKS, name)
                if holds(found.status.conditions, "Active"):
                    continue
                message = "No checker answers for this check: the watchdog lets through what waits for it."
                condition = {"type": "Active", "status": "True", "reason": "Watchdog", "message": message}
                await self.client.apply(
                    ADMISSION_CHECKS, name,
                    {"status": {"conditions": [condition | {"lastTransitionTime": _now()}]}},
                    field_manager=FIELD_MANAGER, subresource="status",
                )  # fmt: skip
            except KubeError as error:
                self.say(f"check {name}: {error}")
            else:
                self.say(f"check {name}: {message}")


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
