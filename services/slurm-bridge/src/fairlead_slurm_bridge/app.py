"""Wiring of the bridge, and the only place where its parts meet."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from fairlead_bus import Bus, ConnectionSettings, connect
from fairlead_bus.facts.announcer import Announcer, Revisions
from fairlead_bus.frontend_endpoints import EpochFence, FrontendEndpoints
from fairlead_bus.ownership.leadership import Leadership
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.messages.events import Event
from fairlead_contracts.messages.state import State
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.frontend_spans import FrontendSpans
from fairlead_runtime.health import Readiness
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_slurm import SlurmJob
from fairlead_slurm.batch.checks import ImageRule
from fairlead_slurm.batch.pods import PodSite
from fairlead_slurm.controller import CommandController, Controller
from fairlead_slurm.images.credentials import CredentialsUnreadableError, credentials
from fairlead_slurm.images.registry import Registries
from fairlead_slurm.rest.client import UNIX, RestClient
from fairlead_slurm.rest.controller import RestController
from fairlead_slurm.slurm_token import SlurmToken
from fairlead_slurm.submitting import SubmittingClient
from fairlead_slurm_bridge.accounted_ends import AccountedEnds
from fairlead_slurm_bridge.bridge import Bridge
from fairlead_slurm_bridge.checking import BatchChecks, CachedRegistry
from fairlead_slurm_bridge.creating import Creator
from fairlead_slurm_bridge.errors import BridgeError
from fairlead_slurm_bridge.gating import Gate, gate
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_slurm_bridge.observing import Observer
from fairlead_slurm_bridge.settings import SlurmBridgeSettings
from fairlead_slurm_bridge.statements.partition_pools import Naming
from fairlead_slurm_bridge.statements.stated_view import StatedView
from fairlead_slurm_bridge.store import SubmissionStore

ROLE = "watcher"
"""Role of the bridge's lease: the watcher's, as the state of its cluster is its own to publish."""


async def main(settings: SlurmBridgeSettings, lifecycle: Lifecycle) -> None:
    """Speak for one slurmctld until the process is asked to stop."""
    with contextlib.closing(SubmissionStore(Path(settings.store))) as store:
        async with (
            gate(settings, lifecycle, store) as gated,
            connect(ConnectionSettings.of(settings), name="slurm-bridge", observer=lifecycle.observer) as bus,
        ):
            await _serve(settings, lifecycle, bus, store, gated)


async def _serve(
    settings: SlurmBridgeSettings, lifecycle: Lifecycle, bus: Bus, store: SubmissionStore, gated: Gate | None
) -> None:
    instruments = BridgeInstruments(lifecycle.metrics)
    bridge, observer, checks = _bridge(settings, store, instruments)
    traces = FrontendSpans(lifecycle.spans, wall_clock, settings.cluster)
    why_silent = partial(observer.why_silent, settings.stale_after_seconds)

    def told(event: Event) -> None:
        instruments.told(event)
        traces.happened([event])

    def taken_over(stood: Mapping[str, State]) -> None:
        traces.taken_over(stood)
        bridge.taken_over(stood)

    ends = AccountedEnds(bridge.controller, bridge.view, store, instruments, wall_clock, told)
    fence = EpochFence(store.fence(), store.keep_fence)
    led = asyncio.Event()
    leadership = _leadership(settings, lifecycle, bus, led, why_silent)
    announcer = Announcer(
        bus,
        leadership,
        cluster=settings.cluster,
        wake=led,
        next_rev=Revisions(wall_clock).next,
        clock=wall_clock,
        endpoints=FrontendEndpoints(bus, settings.cluster, bridge, leadership, fence),
        events_between=ends.between,
        published=ends.published,
        taken_over=taken_over,
    )

    def leads() -> bool:
        return leadership.epoch is not None

    def heard_at() -> Micros | None:
        heard = announcer.why_not_reconciled() is None if leads() else leadership.another_leads
        return observer.heard_at(wall_clock()) if heard and bus.connected else None

    instruments.role(leads)
    _tell_readiness(lifecycle.readiness, bus, announcer, why_silent, leads)
    async with lifecycle.supervise() as tasks:
        tasks.start("connection", bus.wait_closed())
        tasks.start("leadership", leadership.run())
        tasks.start("announcer", announcer.run())
        tasks.start("bridge", bridge.run(announcer.update))
        tasks.start("ends", ends.run(announcer.update, leads, heard_at))
        if gated is not None:
            gated.start(tasks, instruments, leads, checks, bridge.hint)


def _leadership(
    settings: SlurmBridgeSettings,
    lifecycle: Lifecycle,
    bus: Bus,
    wake: asyncio.Event,
    why_silent: Callable[[], str | None],
) -> Leadership:
    return Leadership(
        bus,
        role=ROLE,
        cluster=settings.cluster,
        replica=lifecycle.replica,
        wake=wake,
        describe=lambda lease: msgspec.structs.replace(lease, silent=why_silent() or ""),
    )


def _tell_readiness(
    readiness: Readiness,
    bus: Bus,
    announcer: Announcer,
    why_silent: Callable[[], str | None],
    leads: Callable[[], bool],
) -> None:
    readiness.add("connection", lambda: None if bus.connected else "not connected to NATS")
    readiness.add("state", announcer.why_not_reconciled)
    readiness.add("slurm", why_silent)
    readiness.tell("role", lambda: "leader" if leads() else "standby")


def _bridge(
    settings: SlurmBridgeSettings,
    store: SubmissionStore,
    instruments: BridgeInstruments,
) -> tuple[Bridge, Observer, BatchChecks]:
    token = _token(settings, instruments)
    conf = None if settings.slurm_conf is None else Path(settings.slurm_conf)
    commands = CommandController(conf, seconds=settings.command_seconds, token=token)
    controller = _controller(settings, commands, token)
    observer = Observer(controller)
    instruments.heard(observer.age)
    view = StatedView(
        settings.cluster,
        naming=Naming.of(settings.gres_gpu),
        qos_classes=settings.qos_classes,
        array_window=settings.array_window,
        made_of=store.made_of,
    )
    checks = _checks(settings, commands)
    creator = _creator(settings, controller, view, store, checks)
    polls = settings.poll_seconds
    bridge = Bridge(controller, observer, view, store, instruments, polls, creator)
    return bridge, observer, checks


def _token(settings: SlurmBridgeSettings, instruments: BridgeInstruments) -> SlurmToken | None:
    if settings.slurm_token is None:
        return None
    return SlurmToken(
        Path(settings.slurm_token),
        make=None if settings.submit_socket is None else _submitting(settings, settings.submit_socket).token,
        made=lambda outcome: instruments.token_renewals.labels(outcome).inc(),
    )


def _submitting(settings: SlurmBridgeSettings, socket: str) -> SubmittingClient:
    return SubmittingClient(Path(socket), seconds=settings.command_seconds)


def _controller(
    settings: SlurmBridgeSettings, commands: CommandController, token: SlurmToken | None
) -> Controller:
    if settings.slurmrestd is None:
        return commands
    if token is None and not settings.slurmrestd.startswith(UNIX):
        raise BridgeError("slurmrestd: over TCP it takes a token, so slurm_token has to say where that is")
    client = RestClient(settings.slurmrestd, token=token, seconds=settings.command_seconds)
    return RestController(client, commands)


def _creator(
    settings: SlurmBridgeSettings,
    controller: Controller,
    view: StatedView,
    store: SubmissionStore,
    checks: BatchChecks,
) -> Creator | None:
    if settings.submit_socket is None:
        return None

    async def look() -> Sequence[SlurmJob]:
        return (await controller.jobs()).jobs

    async def ended(account: str, names: Sequence[str], since: Micros) -> Sequence[SlurmJob]:
        known = view.context
        asked = known is not None and known.settings.has_accounting
        return await controller.ended_of(account, names, since) if asked else ()

    return Creator(
        _submitting(settings, settings.submit_socket).submit,
        store,
        view.partition_of,
        look,
        ended,
        naming=Naming.of(settings.gres_gpu),
        qos_classes=settings.qos_classes,
        remarks=checks.remarks,
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
