"""Wiring of the gate, for a bridge that is told of a partition whose jobs run as pods."""

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from fairlead_contracts.frontend.observed import Toleration
from fairlead_kube.client import KubeClient
from fairlead_kube.client import connect as connect_kube
from fairlead_kube.settings import KubeSettings
from fairlead_policy.fit.shapes import PodShape
from fairlead_runtime.lifecycle import Lifecycle, Tasks
from fairlead_runtime.metrics import MetricsObserver
from fairlead_slurm.errors import PodCommentError
from fairlead_slurm.licences import AccountedLicence, LicenceName
from fairlead_slurm.munge import Munge
from fairlead_slurm.partition import PodPartition
from fairlead_slurm.pod_comment import claim
from fairlead_slurm.slurm_token import SlurmToken
from fairlead_slurm_bridge.checking import BatchChecks
from fairlead_slurm_bridge.errors import BridgeError
from fairlead_slurm_bridge.hooks.server import HookServer, trusted_users
from fairlead_slurm_bridge.hooks.tls import TlsEndpoint, endpoint, server_context
from fairlead_slurm_bridge.instruments import BridgeInstruments
from fairlead_slurm_bridge.pods.following import PodFollower
from fairlead_slurm_bridge.pods.keeping import ResultKeeper
from fairlead_slurm_bridge.pods.lifecycle import PodLife
from fairlead_slurm_bridge.pods.manifest import PodRules
from fairlead_slurm_bridge.pods.mirror import KubeMirror
from fairlead_slurm_bridge.pods.programs import ProgramEndRecorder
from fairlead_slurm_bridge.pods.results import ResultRules
from fairlead_slurm_bridge.pods.runs import Runs
from fairlead_slurm_bridge.pods.sweeping import Sweeper, resume_nodes
from fairlead_slurm_bridge.pods.tokens import TokenKeeper
from fairlead_slurm_bridge.settings import SlurmBridgeSettings
from fairlead_slurm_bridge.store import SubmissionStore

_LEADS_NOT = "this bridge does not lead"


class Gate:
    """The parts of the gate, wired.

    Args:
        settings: settings of the bridge.
        lifecycle: readiness and metrics of the process.
        client: calls Kubernetes.
        observer: hears of Kubernetes' troubles.
        store: keeps what slurmctld may forget.
        partition: the partition whose jobs run as pods.
    """

    def __init__(
        self,
        settings: SlurmBridgeSettings,
        lifecycle: Lifecycle,
        client: KubeClient,
        observer: MetricsObserver,
        *,
        store: SubmissionStore,
        partition: str,
    ) -> None:
        self._settings = settings
        conf = None if settings.slurm_conf is None else Path(settings.slurm_conf)
        self._partition = PodPartition(conf, partition, seconds=settings.command_seconds)
        self._mirror = KubeMirror(client, settings.cluster, settings.pods_node_labels, observer=observer)
        runs = Runs(store, time.time)
        self._life = PodLife(
            self._partition,
            client,
            self._mirror,
            pod_rules(settings),
            runs,
            partition=partition,
            settings=settings,
        )
        self._end_recorder = ProgramEndRecorder(self._mirror, runs)
        self._follower = PodFollower(client, self._mirror, self._life)
        self._keeper = ResultKeeper(client, self._mirror)
        self._licence = _licence(settings, conf)
        lifecycle.readiness.add("kubernetes", lambda: self._mirror.why_not(settings.pods_silence_seconds))

    def start(
        self,
        tasks: Tasks,
        instruments: BridgeInstruments,
        leads: Callable[[], bool],
        checks: BatchChecks,
        hint: Callable[[], None],
    ) -> None:
        """Open the socket, and follow Kubernetes.

        Args:
            tasks: runs the tasks of the process.
            instruments: metrics of the bridge.
            leads: whether this bridge leads.
            checks: look at jobs before they stand.
            hint: told that something happens in Slurm.
        """
        sweeper = Sweeper(
            self._partition,
            self._mirror,
            self._life,
            leads=leads,
            seconds=self._settings.pods_sweep_seconds,
            lost_seconds=self._settings.pods_lost_seconds,
        )
        server = HookServer(
            Path(self._settings.hooks_socket),
            self._life,
            self._follower,
            self._keeper,
            checks,
            trusted=trusted_users(self._settings.hooks_users),
            why_not=lambda: self._why_not(leads),
            instruments=instruments,
            tls=self._tls(leads),
            hint=hint,
        )
        tasks.start("mirror of Kubernetes", self._mirror.run())
        tasks.start("recorder of programs' ends", self._end_recorder.run())
        tasks.start("checks", checks.keep_current())
        tasks.start("hooks", server.run())
        tasks.start("sweeper", sweeper.run())
        if self._settings.pods_resume_nodes:
            seconds = self._settings.pods_sweep_seconds
            tasks.start("nodes", resume_nodes(self._partition, leads=leads, seconds=seconds))
        tokens = self._tokens(leads)
        if tokens is not None:
            tasks.start("tokens", tokens.run())

    def _tls(self, leads: Callable[[], bool]) -> TlsEndpoint | None:
        settings = self._settings
        if settings.hooks_listen is None:
            return None
        host, port = endpoint(settings.hooks_listen)
        return TlsEndpoint(
            host=host,
            port=port,
            context=server_context(settings),
            identities=Munge(settings.hooks_munge_socket),
            why_away=lambda: None if leads() else _LEADS_NOT,
        )

    def _tokens(self, leads: Callable[[], bool]) -> TokenKeeper | None:
        if self._licence is None:
            return None
        rules = pod_rules(self._settings)
        shape = PodShape(count=1, selector=rules.node_selector, tolerations=rules.tolerations)
        return TokenKeeper(self._licence, self._mirror, shape, acts=lambda: self._why_not(leads) is None)

    def _why_not(self, leads: Callable[[], bool]) -> str | None:
        return self._mirror.why_not(self._settings.pods_silence_seconds) if leads() else _LEADS_NOT


@contextlib.asynccontextmanager
async def gate(
    settings: SlurmBridgeSettings, lifecycle: Lifecycle, store: SubmissionStore
) -> AsyncIterator[Gate | None]:
    """Open the gate until the block ends; None where no partition's jobs run as pods.

    Raises:
        BridgeError: a setting cannot be read.
        ConfigurationError: the way to Kubernetes is not known.
    """
    if settings.pods_partition is None:
        yield None
        return
    observer = MetricsObserver(lifecycle.metrics, "kube")
    kube = KubeSettings(
        kubeconfig=settings.kubeconfig,
        context=settings.context,
        write_qps=settings.pods_write_qps,
        write_burst=int(2 * settings.pods_write_qps) + 1,
    )
    async with connect_kube(kube, user_agent="fairlead-slurm-bridge", observer=observer) as client:
        yield Gate(settings, lifecycle, client, observer, store=store, partition=settings.pods_partition)


def pod_rules(settings: SlurmBridgeSettings) -> PodRules:
    """Rules for all pods, from the settings.

    Raises:
        BridgeError: a volume claim cannot be read.
    """
    try:
        claims = tuple(claim(text) for text in settings.pods_claims)
    except PodCommentError as error:
        raise BridgeError(f"pods_claims: {error}") from error
    return PodRules(
        cluster=settings.cluster,
        namespace=settings.pods_namespace,
        namespaces=settings.pods_namespaces,
        image=settings.pods_image,
        node_selector=settings.pods_node_labels,
        tolerations=tuple(map(_toleration, settings.pods_tolerations)),
        claims=claims,
        priority_classes=settings.pods_priority_classes,
        labels=settings.pods_labels,
        annotations=settings.pods_annotations,
        stop_seconds=settings.pods_stop_seconds,
        results=ResultRules(hosts=settings.pods_storage, folder=settings.pods_results),
    )


def _licence(settings: SlurmBridgeSettings, conf: Path | None) -> AccountedLicence | None:
    if settings.pods_tokens is None:
        return None
    try:
        name = LicenceName.read(settings.pods_tokens)
    except ValueError as error:
        raise BridgeError(f"pods_tokens: {error}") from error
    # The same file as the observer's, who has it made anew.
    token = None if settings.slurm_token is None else SlurmToken(Path(settings.slurm_token))
    return AccountedLicence(conf, name, seconds=settings.command_seconds, token=token)


def _toleration(text: str) -> Toleration:
    """A toleration of a taint as kubectl writes it: `key=value:effect`, `key:effect` for any value."""
    pair, _, effect = text.rpartition(":")
    key, equals, value = pair.partition("=")
    return Toleration(key=key, operator="Equal" if equals else "Exists", value=value, effect=effect)
