"""Wiring of the checker, and the only place where its parts meet."""

import asyncio

from fairlead_bus import ConnectionSettings, connect
from fairlead_bus.ownership.leadership import Leadership
from fairlead_checker.check_writer import CheckWriter
from fairlead_checker.checker import Checker
from fairlead_checker.instruments import CheckerInstruments, CheckTraces
from fairlead_checker.settings import CheckerSettings
from fairlead_checker.sources import CheckSources
from fairlead_kube.client import connect as connect_kube
from fairlead_kube.settings import KubeSettings
from fairlead_runtime.clock import wall_clock
from fairlead_runtime.lifecycle import Lifecycle
from fairlead_runtime.metrics import MetricsObserver

ROLE = "checker"


async def main(settings: CheckerSettings, lifecycle: Lifecycle) -> None:
    """Answer the checks of one cluster until the process is asked to stop."""
    observer = MetricsObserver(lifecycle.metrics, "kube", lifecycle.spans)
    wake = asyncio.Event()
    async with (
        connect_kube(_kube_settings(settings), user_agent="fairlead-checker", observer=observer) as client,
        connect(ConnectionSettings.of(settings), name=ROLE, observer=lifecycle.observer) as bus,
    ):
        leadership = Leadership(
            bus, role=ROLE, cluster=settings.cluster, replica=lifecycle.replica, wake=wake
        )
        sources = CheckSources(client, settings.controller_name, wake=wake, observer=observer)
        instruments = CheckerInstruments(lifecycle.metrics)
        traces = CheckTraces(lifecycle.spans, settings.cluster)
        instruments.role(lambda: leadership.epoch is not None)

        def why_not() -> str | None:
            return sources.missing() or sources.why_silent(settings.stale_after_seconds)

        checker = Checker(
            sources,
            CheckWriter(client, observer, traces, dry_run=settings.dry_run),
            settings,
            instruments,
            traces=traces,
            why_not=lambda: "it does not lead" if leadership.epoch is None else why_not(),
            clock=wall_clock,
            wake=wake,
        )
        readiness = lifecycle.readiness
        readiness.add("connection", lambda: None if bus.connected else "not connected to NATS")
        readiness.add("lease", leadership.trouble)
        readiness.add("cluster", why_not)
        readiness.tell("role", lambda: "standby" if leadership.epoch is None else "leader")
        async with lifecycle.supervise() as tasks:
            tasks.start("connection", bus.wait_closed())
            tasks.start("leadership", leadership.run())
            tasks.start("sources", sources.run())
            tasks.start("checker", checker.run())


def _kube_settings(settings: CheckerSettings) -> KubeSettings:
    return KubeSettings(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        request_timeout_seconds=settings.kube_timeout_seconds,
        watch_silence_seconds=settings.kube_silence_seconds,
        write_qps=settings.write_qps,
        write_burst=int(2 * settings.write_qps) + 1,
    )
