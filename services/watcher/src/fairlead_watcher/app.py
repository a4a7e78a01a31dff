"""Wiring: who gets what. The only place where the parts of the watcher meet."""

import asyncio

from fairlead_bus import Announcer, Bus, ConnectionSettings, Leadership, connect
from fairlead_contracts.instants import from_seconds
from fairlead_kube import KubeClient, KubeSettings
from fairlead_kube import connect as connect_kube
from fairlead_runtime import Lifecycle, MetricsObserver, wall_clock
from fairlead_watcher.cluster_view import ClusterView
from fairlead_watcher.instruments import Instruments
from fairlead_watcher.kinds import Kinds
from fairlead_watcher.lifecycle import Chronicle
from fairlead_watcher.revisions import Revisions
from fairlead_watcher.settings import WatcherSettings
from fairlead_watcher.watcher import Watcher

ROLE = "watcher"


async def main(settings: WatcherSettings, lifecycle: Lifecycle) -> None:
    """State one cluster until the process is asked to stop."""
    observer = MetricsObserver(lifecycle.metrics, "kube")
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
        await _serve(settings, lifecycle, bus, client, observer)


async def _serve(
    settings: WatcherSettings, lifecycle: Lifecycle, bus: Bus, client: KubeClient, observer: MetricsObserver
) -> None:
    stay, news, led = from_seconds(settings.ended_stay_seconds), asyncio.Event(), asyncio.Event()
    view = ClusterView(settings.cluster, ended_stay=stay)
    instruments = Instruments(lifecycle.metrics)
    sources = Kinds(
        client,
        settings.cluster,
        view,
        clock=wall_clock,
        ended_stay=stay,
        wake=news,
        observer=observer,
        probe_seconds=settings.probe_seconds,
    ).all()
    leadership = Leadership(bus, role=ROLE, cluster=settings.cluster, replica=lifecycle.replica, wake=led)
    announcer = Announcer(
        bus,
        leadership,
        cluster=settings.cluster,
        wake=led,
        next_rev=Revisions(wall_clock).next,
        clock=wall_clock,
        story=Chronicle(view, wall_clock, instruments.told).story,
        missing=sources.missing,
    )
    watcher = Watcher(sources, view, announcer, instruments, clock=wall_clock, wake=news)
    instruments.heard(sources.ages())
    instruments.role(lambda: leadership.epoch is not None)
    readiness = lifecycle.readiness
    readiness.add("connection", lambda: None if bus.connected else "not connected to NATS")
    readiness.add("knowledge", watcher.unknown)
    readiness.add("cluster", lambda: sources.why_silent(settings.stale_after_seconds))
    readiness.add("state", announcer.why_not_agreed)
    readiness.tell("role", lambda: "standby" if leadership.epoch is None else "leader")
    async with lifecycle.supervise() as tasks:
        tasks.start("connection", bus.wait_closed())
        tasks.start("leadership", leadership.run())
        tasks.start("announcer", announcer.run())
        tasks.start("sources", sources.run())
        tasks.start("watcher", watcher.run())
