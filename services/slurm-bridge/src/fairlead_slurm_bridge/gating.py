"""Wiring of the gate, for a bridge that is told of a partition whose jobs run as pods."""

import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec

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


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of the gate that stand before anybody leads."""

    settings: SlurmBridgeSettings
    client: KubeClient
    partition: PodPartition
    mirror: KubeMirror
    life: PodLife
    licence: AccountedLicence | None

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
        server = HookServer(
            Path(self.settings.hooks_socket),
            self.life,
            PodFollower(self.client, self.mirror, self.life),
            ResultKeeper(self.client, self.mirror),
            checks.remarks_at_once,
            trusted=trusted_users(self.settings.hooks_users),
            why_not=lambda: self._why_not(leads),
            instruments=instruments,
            tls=self._tls(leads),
            hint=hint,
        )
        tasks.start("mirror of Kubernetes", self.mirror.run())
        tasks.start("recorder of programs' ends", ProgramEndRecorder(self.mirror, self.life.runs).run())
        tasks.start("checks", checks.keep_current())
        tasks.start("hooks", server.run())
        tasks.start("sweeper", Sweeper(self.partition, self.mirror, self.life, leads, self.settings).run())
        if self.settings.pods_resume_nodes:
            seconds = self.settings.pods_sweep_seconds
            tasks.start("nodes", resume_nodes(self.partition, leads=leads, seconds=seconds))
        if self.licence is not None:
            rules = pod_rules(self.settings)
            shape = PodShape(count=1, selector=rules.node_selector, tolerations=rules.tolerations)
            keeper = TokenKeeper(self.licence, self.mirror, shape, lambda: self._why_not(leads) is None)
            tasks.start("tokens", keeper.run())

    def _tls(self, leads: Callable[[], bool]) -> TlsEndpoint | None:
        settings = self.settings
        if settings.hooks_listen is None:
            return None
        host, port = endpoint(settings.hooks_listen)
        return TlsEndpoint(
            host=host,
            port=port,
            context=server_context(settings),
            user_of=Munge(settings.hooks_munge_socket).user_of,
            why_away=lambda: None if leads() else _LEADS_NOT,
        )

    def _why_not(self, leads: Callable[[], bool]) -> str | None:
        return self.mirror.why_not(self.settings.pods_silence_seconds) if leads() else _LEADS_NOT


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
        conf = None if settings.slurm_conf is None else Path(settings.slurm_conf)
        partition = PodPartition(conf, settings.pods_partition, seconds=settings.command_seconds)
        mirror = KubeMirror(client, settings.cluster, settings.pods_node_labels, observer=observer)
        life = PodLife(
            partition, client, mirror, pod_rules(settings), Runs(store, time.time), settings=settings
        )
        lifecycle.readiness.add("kubernetes", lambda: mirror.why_not(settings.pods_silence_seconds))
        yield Gate(
            settings=settings,
            client=client,
            partition=partition,
            mirror=mirror,
            life=life,
            licence=_licence(settings, conf),
        )


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
