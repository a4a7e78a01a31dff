"""Wiring: who gets what. The only place where the parts of the bridge meet."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path

from fairlead_bus import (
    Announcer,
    Bus,
    ConnectionSettings,
    EpochFence,
    EventDiff,
    FrontendEndpoints,
    Leadership,
    NoMemory,
    Revisions,
    connect,
)
from fairlead_contracts.messages.events import Event
from fairlead_runtime import FrontendSpans, Lifecycle, wall_clock
from fairlead_slurm import CommandController, PodSite, SlurmJob
from fairlead_slurm.images.credentials import CredentialsUnreadableError, credentials
from fairlead_slurm.images.registry import Registries
from fairlead_slurm.images.remarks import ImageRule
from fairlead_slurm.submitting import SubmittingClient
from fairlead_slurm_bridge.bridge import Bridge
from fairlead_slurm_bridge.checking import BatchChecks, CachedRegistry
from fairlead_slurm_bridge.creating import Creator
from fairlead_slurm_bridge.domains import Naming
from fairlead_slurm_bridge.errors import BridgeError
from fairlead_slurm_bridge.first_seen import FirstSeen
from fairlead_slurm_bridge.gating import Gate, gate
from fairlead_slurm_bridge.instruments import Instruments
from fairlead_slurm_bridge.observing import Observer
from fairlead_slurm_bridge.settings import SlurmBridgeSettings
from fairlead_slurm_bridge.store import Store
from fairlead_slurm_bridge.view import View

ROLE = "watcher"
"""It stands in the watcher's place: the state of its cluster is its own to publish."""


async def main(settings: SlurmBridgeSettings, lifecycle: Lifecycle) -> None:
    """Speak for one slurmctld until the process is asked to stop."""
    with contextlib.closing(Store(Path(settings.store))) as store:
        async with (
            gate(settings, lifecycle) as gated,
            connect(ConnectionSettings.of(settings), name="slurm-bridge", observer=lifecycle.observer) as bus,
        ):
            await _serve(settings, lifecycle, bus, store, gated)


async def _serve(
    settings: SlurmBridgeSettings, lifecycle: Lifecycle, bus: Bus, store: Store, gated: Gate | None
) -> None:
    controller = CommandController(
        None if settings.slurm_conf is None else Path(settings.slurm_conf),
        seconds=settings.command_seconds,
        token=None if settings.slurm_token is None else Path(settings.slurm_token),
    )
    observer = Observer(controller)
    view = _view(settings, store)
    instruments = Instruments(lifecycle.metrics)
    checks = _checks(settings, controller)
    creator = _creator(settings, controller, view, store, checks)
    polls = settings.poll_seconds
    bridge = Bridge(controller, observer, view, store, instruments, poll_seconds=polls, creator=creator)
    traces = FrontendSpans(lifecycle.spans, wall_clock, settings.cluster)

    def told(event: Event) -> None:
        instruments.told(event)
        traces.happened([event])

    led = asyncio.Event()
    leadership = Leadership(bus, role=ROLE, cluster=settings.cluster, replica=lifecycle.replica, wake=led)
    announcer = Announcer(
        bus,
        leadership,
        cluster=settings.cluster,
        wake=led,
        next_rev=Revisions(wall_clock).next,
        clock=wall_clock,
        endpoints=FrontendEndpoints(
            bus, settings.cluster, bridge, leadership, EpochFence(store.fence(), store.keep_fence)
        ),
        story=EventDiff(NoMemory(), wall_clock, told).story,
        taken_over=traces.taken_over,
    )
    instruments.role(lambda: leadership.epoch is not None)
    readiness = lifecycle.readiness
    readiness.add("connection", lambda: None if bus.connected else "not connected to NATS")
    readiness.add("state", announcer.why_not_agreed)
    readiness.add("slurm", lambda: observer.why_silent(settings.stale_after_seconds))
    readiness.tell("role", lambda: "standby" if leadership.epoch is None else "leader")
    async with lifecycle.supervise() as tasks:
        tasks.start("connection", bus.wait_closed())
        tasks.start("leadership", leadership.run())
        tasks.start("announcer", announcer.run())
        tasks.start("bridge", bridge.run(announcer))
        if gated is not None:
            gated.start(tasks, instruments, lambda: leadership.epoch is not None, checks)


def _view(settings: SlurmBridgeSettings, store: Store) -> View:
    return View(
        settings.cluster,
        naming=Naming.of(settings.gres_gpu),
        qos_classes=settings.qos_classes,
        array_window=settings.array_window,
        first_seen=FirstSeen(store.first_seen()),
    )


def _creator(
    settings: SlurmBridgeSettings,
    controller: CommandController,
    view: View,
    store: Store,
    checks: BatchChecks,
) -> Creator | None:
    if settings.submit_socket is None:
        return None

    async def look() -> Sequence[SlurmJob]:
        return (await controller.jobs()).jobs

    return Creator(
        SubmittingClient(Path(settings.submit_socket), seconds=settings.command_seconds),
        store,
        view,
        look,
        naming=Naming.of(settings.gres_gpu),
        qos_classes=settings.qos_classes,
        checks=checks,
    )


def _checks(settings: SlurmBridgeSettings, controller: CommandController) -> BatchChecks:
    try:
        known = {} if settings.images_auth is None else credentials(Path(settings.images_auth))
    except CredentialsUnreadableError as error:
        raise BridgeError(f"images_auth: {error}") from error
    registries = Registries(known, seconds=settings.images_seconds, plain=settings.images_plain)
    partition = settings.pods_partition
    return BatchChecks(
        controller,
        CachedRegistry(registries, settings.images_registries),
        ImageRule(settings.images),
        None if partition is None else PodSite(partition=partition, image=settings.pods_image),
    )
