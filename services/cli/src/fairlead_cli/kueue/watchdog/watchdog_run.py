"""The loop: who leads, what follows, do it, say it. It goes on whatever is away."""

import asyncio
import os
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead_bus import BusError, connect
from fairlead_bus.ownership.roster import Roster
from fairlead_cli.client.connection import connection_settings
from fairlead_cli.client.instance import find_url, without_password
from fairlead_cli.console import say, warn
from fairlead_cli.errors import CommandError, InputError, leaves
from fairlead_cli.kueue.clusters import KubeTarget, opened
from fairlead_cli.kueue.flags import WatchdogFlags
from fairlead_cli.kueue.watchdog.checks import CheckGuard
from fairlead_cli.kueue.watchdog.queues import LeadClock, QueueAction, carry_out
from fairlead_cli.signals import ending_on_signals
from fairlead_contracts.frontend.shipped import KUEUE_BLOCKING, KUEUE_PARKING
from fairlead_kube.client import KubeClient
from fairlead_kube.errors import ForbiddenError, KubeError, NotFoundError
from fairlead_kube.kinds.resources import ADMISSION_CHECKS, CLUSTER_QUEUES, Resource

_ROLE = "admitter"
_RETRY_SECONDS = 1.0


@dataclass(eq=False)
class LeaderWatch:
    """The leader of a cluster's admitters, as far as NATS says so. Nobody is known to lead while it is out of reach."""

    cluster: str
    nats: str | None
    _roster: Roster | None = field(default=None, init=False)
    _lost: bool = field(default=False, init=False)

    @property
    def leader(self) -> str | None:
        """Tells one lead from another; None where nobody is known to lead."""
        if self._roster is None or not self._roster.complete:
            return None
        lease = self._roster.leader(_ROLE, self.cluster)
        return None if lease is None else f"{lease.replica}/{lease.epoch}"

    def elsewhere(self) -> list[str]:
        """The clusters for which admitters lead, while none does for this one: its name may be another."""
        if self._roster is None or not self._roster.complete or self.leader is not None:
            return []
        return sorted(lease.cluster for lease in self._roster.leaders(_ROLE))

    async def run(self) -> None:
        """Connects, listens, and connects again, until cancelled."""
        while True:
            try:
                url = find_url(self.nats, os.environ)
                settings = connection_settings(url, os.environ)
                async with connect(settings, name="watchdog") as bus, asyncio.TaskGroup() as group:
                    self._roster = Roster(bus, wake=asyncio.Event())
                    self._tell(None)
                    group.create_task(self._roster.run(), name="roster")
                    group.create_task(self._until_moved(url), name="address")
                    await bus.wait_closed()
            except* (BusError, CommandError) as lost:
                self._tell(next(leaves(lost)))
            self._roster = None
            await asyncio.sleep(_RETRY_SECONDS)

    def _tell(self, lost: Exception | None) -> None:
        """Say it when NATS is lost, and when it is there again: not with every try."""
        if (lost is not None) != self._lost:
            say("NATS is within reach again" if lost is None else f"NATS is out of reach: {lost}")
        self._lost = lost is not None

    async def _until_moved(self, url: str) -> None:
        """Look whether NATS is still meant to be there: one that `fairlead up` starts anew has another port.

        Raises:
            CommandError: it is not.
        """
        while find_url(self.nats, os.environ) == url:  # noqa: ASYNC110 - files of other processes ring no bell
            await asyncio.sleep(_RETRY_SECONDS)
        raise CommandError(f"no longer at {without_password(url)}")


async def run_watchdog(
    target: KubeTarget, queues: Sequence[str], flags: WatchdogFlags, nats: str | None
) -> None:
    """Watch until a signal asks for the end: it is a service, whoever keeps it stops it so.

    Raises:
        InputError: the cluster has none of these queues, or none of these checks.
    """
    await _look_at_names(target, {CLUSTER_QUEUES: queues, ADMISSION_CHECKS: flags.check})
    with ending_on_signals() as end:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in _parts(target, queues, flags, nats)]
            await end.wait()
            for task in tasks:
                task.cancel()


async def _look_at_names(target: KubeTarget, named: Mapping[Resource[Any], Sequence[str]]) -> None:
    """Warn of misspelt names, which would be watched in vain. Where the cluster does not answer now, names are taken as they are.

    Raises:
        InputError: the cluster has none of the names of a kind.
    """
    try:
        async with opened(target) as client:
            unknown = {kind: await _unknown(client, kind, names) for kind, names in named.items()}
    except CommandError as error:
        warn(str(error))
        return
    for kind, missing in unknown.items():
        told = f"cluster {target.cluster} has no {kind.kind} {', '.join(missing)}"
        if missing and len(missing) == len(named[kind]):
            raise InputError(told, hint=f"`kubectl get {kind.plural}` lists them.")
        if missing:
            warn(f"{told}: the others are watched")


async def _unknown[T](client: KubeClient, kind: Resource[T], names: Sequence[str]) -> list[str]:
    """The names that no object has. One that may not be read, or not just now, is taken for known.

    Raises:
        KubeError: the cluster cannot be reached.
    """
    unknown = []
    for name in names:
        try:
            await client.get(kind, name)
        except NotFoundError:
            unknown.append(name)
        except ForbiddenError:
            continue
    return unknown


def _parts(
    target: KubeTarget, queues: Sequence[str], flags: WatchdogFlags, nats: str | None
) -> Iterator[Coroutine[object, object, None]]:
    if flags.check:
        yield _guard_checks(target, flags)
    if queues:
        watch = LeaderWatch(target.cluster, nats)
        yield watch.run()
        yield _act(target, queues, flags, watch)


async def _guard_checks(target: KubeTarget, flags: WatchdogFlags) -> None:
    """Guards checks by the cluster alone: NATS may be what is away."""
    say(
        f"cluster {target.cluster}: watching {', '.join(flags.check)}: a Workload that holds quota for "
        f"{flags.overdue:g} s without an answer is let through unchecked"
    )
    async with opened(target) as client:
        await CheckGuard(client, flags.check, flags.overdue, warn).run(flags.every)


async def _act(target: KubeTarget, queues: Sequence[str], flags: WatchdogFlags, watch: LeaderWatch) -> None:
    lead = LeadClock(flags.after, flags.back_after)
    last: QueueAction | None = None
    named: list[str] = []
    while True:
        if (elsewhere := watch.elsewhere()) != named and (named := elsewhere):
            say(
                f"no admitter leads for cluster {target.cluster} now; admitters lead for {', '.join(named)}. "
                "If it is one of these, name it with --cluster"
            )
        verdict = lead.see(watch.leader, time.monotonic())
        if verdict is not last:
            say(f"cluster {target.cluster}: {_said(verdict, last, ', '.join(queues), flags)}")
            last = verdict
        await _carry_out(target, queues, verdict)
        await asyncio.sleep(flags.every)


async def _carry_out(target: KubeTarget, queues: Sequence[str], verdict: QueueAction) -> None:
    if verdict is QueueAction.WAIT:
        return
    try:
        async with opened(target) as client:
            for queue in queues:
                try:
                    done = await carry_out(client, queue, verdict)
                except KubeError as error:
                    warn(f"{queue}: {error}")  # the others have their turn; this one again the next time
                else:
                    if done:
                        say(done)
    except CommandError as error:
        warn(str(error))


def _said(verdict: QueueAction, last: QueueAction | None, queues: str, flags: WatchdogFlags) -> str:
    """A line on what was seen, and what follows from it once it has lasted."""
    loosened = f"{queues}: {KUEUE_PARKING} once no admitter has led for {flags.after:g} s"
    match verdict, last:
        case QueueAction.LOOSEN, _:
            return f"no admitter has led for {flags.after:g} s"
        case QueueAction.TIGHTEN, _:
            return f"an admitter has led for {flags.back_after:g} s"
        case _, None:
            return f"watching {loosened}"
        case _, QueueAction.LOOSEN:
            return f"an admitter leads again. {queues}: {KUEUE_BLOCKING} once it has led for {flags.back_after:g} s"
        case _:
            return f"another admitter leads, or none. {loosened}"
