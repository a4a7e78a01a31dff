"""Opening the frontend that the settings name: what writes levels there, what makes jobs, what must run beside them."""

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from fairlead_admitter.apply.level_applier import LevelWriter
from fairlead_admitter.apply.lever_probe import LeverProber
from fairlead_admitter.apply.release import Sweep
from fairlead_admitter.frontends.bus.frontend import BusFrontend
from fairlead_admitter.frontends.kueue.calls import KueueCalls
from fairlead_admitter.frontends.kueue.events import KueueObjections
from fairlead_admitter.frontends.kueue.jobs import KueueJobs, ServiceAccounts
from fairlead_admitter.frontends.kueue.levels import KueueLevels
from fairlead_admitter.frontends.kueue.lever import KueueLever
from fairlead_admitter.frontends.kueue.rights import FreshRefusals
from fairlead_admitter.frontends.kueue.sweep import KueueSweep
from fairlead_admitter.intake.creation import JobCreator
from fairlead_admitter.intake.entry_queue import entry_queue_for
from fairlead_admitter.observe.watch import Watch
from fairlead_admitter.report.event_recorder import EventSink
from fairlead_admitter.settings import AdmitterSettings
from fairlead_bus import Bus
from fairlead_contracts.base.observer import LibraryObserver
from fairlead_contracts.messages.leave import LeverName
from fairlead_kube.client import KubeClient
from fairlead_kube.client import connect as connect_kube
from fairlead_kube.connection.throttle import Throttle
from fairlead_kube.settings import KubeSettings
from fairlead_policy.levels.withholding import unsteered_level

_EVENTS_QPS, _EVENTS_BURST = 5.0, 25
"""Events a second, and in a burst: as client-go holds its Events back."""

_SWEEP_QPS, _SWEEP_BURST = 10.0, 20
"""Writes a second of a sweep, and in a burst: marks on what finished are in nobody's way, so a release has time."""

_PROBE_QPS, _PROBE_BURST = 1.0, 6
"""Dry runs a second, and in a burst: a probe is three of them."""

type Background = Callable[[], Coroutine[Any, Any, None]]
"""A task that runs as long as the admitter serves."""


class Frontend(msgspec.Struct, frozen=True, kw_only=True):
    """A frontend, as the rest of the admitter sees it."""

    levels: LevelWriter
    jobs: JobCreator
    sweep: Sweep | None = None
    """Cleans what runs or finished, where that carries marks."""
    objections: EventSink | None = None
    """Says what speaks against jobs, where their authors can be told at all."""
    lever: LeverProber | None = None
    """Tells which lever the frontend obeys, where there is more than one."""
    background: Mapping[str, Background] = {}
    """Tasks that must run beside levels and jobs, by name."""


@asynccontextmanager
async def open_frontend(
    settings: AdmitterSettings,
    bus: Bus,
    watch: Watch,
    observer: LibraryObserver,
    *,
    epoch: Callable[[], int | None],
    overtaken: Callable[[int], None],
) -> AsyncIterator[Frontend]:
    """The frontend until the block ends. Nothing is sent to it yet.

    Args:
        observer: counts calls to an API server.
        epoch: epoch of our leadership; None while we do not lead.
        overtaken: told our epoch where the frontend has obeyed a later one.

    Raises:
        ConfigurationError: the way to the cluster is not known.
    """
    match settings.frontend:
        case "bus":
            behind = BusFrontend(
                bus,
                settings.cluster,
                epoch=epoch,
                overtaken=overtaken,
                unsteered=lambda job: unsteered_level(job, watch.facts.queues.get(job.queue)),
                timeout_seconds=settings.frontend_timeout_seconds,
            )
            yield Frontend(levels=behind, jobs=behind)
        case "kueue":
            async with connect_kube(
                _kube_settings(settings), user_agent="fairlead-admitter", observer=observer
            ) as client:
                yield _kueue(client, settings, watch)


def _kueue(client: KubeClient, settings: AdmitterSettings, watch: Watch) -> Frontend:
    def lever() -> LeverName | None:
        words = watch.policy.words
        leave = words.leave(settings.cluster) or words.revocation(settings.cluster)
        return None if leave is None else leave.lever

    calls = KueueCalls(client)
    prober = KueueLever(_with_own_writes(client, _PROBE_QPS, _PROBE_BURST))
    sweeper = _with_own_writes(client, _SWEEP_QPS, _SWEEP_BURST)
    return Frontend(
        levels=KueueLevels(calls, lever, outage=prober.doubt),
        jobs=_jobs(client, settings, watch),
        sweep=KueueSweep(
            KueueCalls(sweeper),
            lambda namespace, entry: watch.facts.entries(namespace).get(entry),
            watch.facts.queues,
        ),
        objections=KueueObjections(_with_own_writes(client, _EVENTS_QPS, _EVENTS_BURST), calls, lever),
        lever=prober,
    )


def _jobs(client: KubeClient, settings: AdmitterSettings, watch: Watch) -> KueueJobs:
    facts = watch.facts
    return KueueJobs(
        _with_own_writes(client, settings.kube_create_qps, settings.kube_create_burst),
        entry=lambda scope, wanted: entry_queue_for(facts.entries(scope), wanted),
        classes=lambda: facts.classes,
        accounts=ServiceAccounts(submit=settings.submit_service_account, pods=settings.pod_service_account),
        refusals=FreshRefusals(settings.kube_believe_forbidden_seconds),
        annotation_prefixes=settings.template_annotation_prefixes,
    )


def _with_own_writes(client: KubeClient, qps: float, burst: int) -> KubeClient:
    """The connection with an allowance of writes of its own: a flood of them must not hold back levels."""
    return KubeClient(client.transport, writes=Throttle(qps, burst), observer=client.observer)


def _kube_settings(settings: AdmitterSettings) -> KubeSettings:
    return KubeSettings(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        write_qps=settings.kube_write_qps,
        write_burst=settings.kube_write_burst,
        request_timeout_seconds=settings.kube_timeout_seconds,
    )
