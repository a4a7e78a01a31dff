"""Wiring of the watcher, and the only place where its parts meet."""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.facts.announcer import Announcer, Revisions, Statements
from fairlead_bus.facts.event_diff import EventDiff
from fairlead_bus.ownership.leadership import Leadership
from fairlead_contracts.base.instants import from_seconds
from fairlead_contracts.messages.events import Event
from fairlead_contracts.messages.members import LeaderLease
from fairlead_kube.client import KubeClient
from fairlead_kube.client import connect as connect_kube
from fairlead_kube.settings import KubeSettings
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.frontend_spans import FrontendSpans
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_runtime.metrics import MetricsObserver
from fairlead_watcher.admitter import Lateness, LeverSource
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.instruments import WatcherInstruments
from fairlead_watcher.kinds import Kinds
from fairlead_watcher.settings import WatcherSettings
from fairlead_watcher.sources import SourceContext, WatchedKinds
from fairlead_watcher.watcher import Watcher, WatcherAudience

ROLE = "watcher"


async def main(settings: WatcherSettings, lifecycle: Lifecycle) -> None:
    """States one cluster until the process is asked to stop."""
    observer = MetricsObserver(lifecycle.metrics, "kube", lifecycle.spans)
    kube = KubeSettings(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        request_timeout_seconds=settings.kube_timeout_seconds,
        watch_silence_seconds=settings.kube_silence_seconds,
    )
    async with (
        connect_kube(kube, user_agent="fairlead-watcher", observer=observer) as client,
        connect(ConnectionSettings.of(settings), name=ROLE, observer=lifecycle.observer) as bus,
    ):
        parts = Parts(settings, lifecycle, bus, client, observer)
        await (parts.dry_run() if settings.dry_run else parts.serve())


class Parts:
    """The parts of one watcher, wired; the audience is not among them."""

    def __init__(
        self,
        settings: WatcherSettings,
        lifecycle: Lifecycle,
        bus: Bus,
        client: KubeClient,
        observer: MetricsObserver,
    ) -> None:
        self._settings = settings
        self._lifecycle = lifecycle
        self._bus = bus
        self._stay = from_seconds(settings.ended_stay_seconds)
        self._news = asyncio.Event()
        self._view = ClusterView(settings.cluster, ended_stay=self._stay)
        self._instruments = WatcherInstruments(lifecycle.metrics)
        self._lateness = Lateness(bus, settings.cluster)
        watching = SourceContext(client, self._news, observer, settings.probe_seconds, self._lateness.due)
        kinds = Kinds(watching, settings.cluster, self._view, clock=wall_clock, ended_stay=self._stay)
        lever = LeverSource(bus, settings.cluster, self._view, wake=self._news)
        self._sources = WatchedKinds([*kinds.all(), lever])
        self._instruments.heard(self._sources.ages())
        self._traces = FrontendSpans(lifecycle.spans, wall_clock, settings.cluster)

    def _described(self, lease: LeaderLease) -> LeaderLease:
        """The lease, with the reason why statements may be old."""
        silent = self._sources.why_silent(self._settings.stale_after_seconds)
        return msgspec.structs.replace(lease, silent=silent or "")

    async def serve(self) -> None:
        """Stands for the lead; while leading, states the cluster."""
        led = asyncio.Event()
        leadership = Leadership(
            self._bus,
            role=ROLE,
            cluster=self._settings.cluster,
            replica=self._lifecycle.replica,
            wake=led,
            describe=self._described,
        )
        announcer = Announcer(
            self._bus,
            leadership,
            cluster=self._settings.cluster,
            wake=led,
            next_rev=Revisions(wall_clock).next,
            clock=wall_clock,
            events_between=EventDiff(self._view, wall_clock, self._told).between,
            missing=self._sources.missing,
            taken_over=self._traces.taken_over,
        )
        self._instruments.role(lambda: leadership.epoch is not None)
        watcher = self._watcher(announcer, lambda: "standby" if leadership.epoch is None else "leader")
        self._lifecycle.readiness.add("state", announcer.why_not_reconciled)
        async with self._lifecycle.supervise() as tasks:
            tasks.start("connection", self._bus.wait_closed())
            tasks.start("leadership", leadership.run())
            tasks.start("announcer", announcer.run())
            tasks.start("sources", self._sources.run())
            tasks.start("lateness", self._lateness.run())
            tasks.start("watcher", watcher.run())

    def _told(self, event: Event) -> None:
        self._instruments.told(event)
        self._traces.happened([event])

    async def dry_run(self) -> None:
        """Watches, and logs what would be stated."""
        watcher = self._watcher(DryRunAudience(), lambda: "dry run")
        async with self._lifecycle.supervise() as tasks:
            tasks.start("connection", self._bus.wait_closed())
            tasks.start("sources", self._sources.run())
            tasks.start("lateness", self._lateness.run())
            tasks.start("watcher", watcher.run())

    def _watcher(self, audience: WatcherAudience, role: Callable[[], str]) -> Watcher:
        """The loop, with the reasons not to be ready. A standby is ready too: it knows everything, and waits."""
        watcher = Watcher(
            self._sources,
            self._view,
            audience,
            self._instruments,
            clock=wall_clock,
            wake=self._news,
        )
        longest = self._settings.stale_after_seconds
        readiness = self._lifecycle.readiness
        readiness.add("connection", lambda: None if self._bus.connected else "not connected to NATS")
        readiness.add("knowledge", watcher.unknown)
        readiness.add("cluster", lambda: self._sources.why_silent(longest))
        readiness.tell("role", role)
        return watcher


class DryRunAudience:
    """The audience of a dry run."""

    def __init__(self) -> None:
        self._log: structlog.typing.FilteringBoundLogger = structlog.get_logger()

    def update(self, statements: Statements) -> None:
        """Log changed statements, which nobody else hears."""
        for subject, state in statements.items():
            self._log.info(
                "would_state", subject=subject, state=None if state is None else msgspec.to_builtins(state)
            )
