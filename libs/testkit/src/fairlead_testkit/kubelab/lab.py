"""A real Kubernetes with a real Kueue on loopback, as plain processes: no container, no root, nothing left behind."""

import contextlib
import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from fairlead_testkit.kubelab import audit, furnishing, kueue_setup, parts, users
from fairlead_testkit.kubelab.api import Api, KubeObject, documents
from fairlead_testkit.kubelab.audit import AuditLine
from fairlead_testkit.kubelab.building import Kit, build
from fairlead_testkit.kubelab.certificates import LOOPBACK, Certificates, token_of
from fairlead_testkit.kubelab.errors import ApiError, ApiUnreachableError, KubectlError, KubeLabError
from fairlead_testkit.kubelab.options import LabOptions, NodeShape
from fairlead_testkit.kubelab.parts import (
    APISERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KUEUE,
    KWOK,
    SCHEDULER,
    KubeLabPaths,
    Ports,
)
from fairlead_testkit.kubelab.store import EtcdGateway
from fairlead_testkit.kubelab.toolsets import OLDER
from fairlead_testkit.labs.processes import Lab, LabProcess
from fairlead_testkit.timing.awaiting import until

READY_SECONDS = 90.0
"""Seconds for each part to become ready: it takes a few; a busy machine takes longer. Only spent on failure."""


class KubeLab(Lab):
    """The lab: etcd, kube-apiserver and Kueue, and by default controller-manager, scheduler and KWOK nodes.

    Args:
        directory: folder for data and logs, kept; by default a temporary one, removed at the end.
        kit: the binaries; by default those of this version of the code, built where they are missing.
    """

    def __init__(
        self, options: LabOptions | None = None, directory: Path | None = None, kit: Kit | None = None
    ) -> None:
        super().__init__(directory, "kubelab-")
        self.options = options or LabOptions()
        self.gates = dict(self.options.gates)
        self._kit = kit
        self._layout = KubeLabPaths(self._folder)
        self._certificates = Certificates(self._layout.folder / "certificates")
        self._ports: Ports | None = None
        self._apis: dict[str, Api] = {}

    # --- start and end

    def _bring_up(self) -> None:
        """Start part after part.

        Raises:
            GoMissingError: nothing is built, and there is no Go.
        """
        self._kit = self._kit or build()
        if self.options.kueue is not None:
            self._kit = Kit(build(OLDER[self.options.kueue]).folder, rest=self._kit)
        self._prepare()
        port, bundle = self._taken.webhook, self._certificates.bundle
        kinds = furnishing.kinds(self.kit, self.options, port=port, bundle=bundle)
        self._start_etcd(kinds)
        self._start_apiserver()
        self._start_workers()
        furnishing.await_kinds(self.api, kinds)
        self._start_kueue()
        self._furnish()
        self._await_kueue()
        self._await_nodes()

    def stop(self) -> None:
        """End all at once; what a temporary directory holds is gone with it."""
        for process in reversed(self._processes.values()):
            process.kill()
        for api in self._apis.values():
            api.close()
        super().stop()

    # --- clients

    @property
    def kit(self) -> Kit:
        """The binaries in use.

        Raises:
            KubeLabError: the lab was never started.
        """
        if self._kit is None:
            raise KubeLabError("the lab was never started")
        return self._kit

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://{LOOPBACK}:{self._taken.apiserver}"

    @property
    def api(self) -> Api:
        """A client that may do everything."""
        return self.api_as(users.ADMIN)

    def api_as(self, user: str) -> Api:
        """A client of one of the lab's users."""
        if user not in self._apis:
            self._apis[user] = self._api_on(self._taken.apiserver, user)
        return self._apis[user]

    def kubeconfig(self, user: str = users.ADMIN) -> Path:
        """The kubeconfig file of `admin`, `fairlead-watcher`, `fairlead-admitter` or `fairlead-operator`."""
        return self._layout.kubeconfig(user)

    def kubectl(self, *arguments: str, user: str = users.ADMIN, given: str | None = None) -> str:
        """Run kubectl and return what it printed.

        Args:
            arguments: arguments without --kubeconfig.
            given: text on its standard input, for `-f -`.

        Raises:
            KubectlError: the command failed.
        """
        command = [
            str(self.kit.binary("kubectl")),
            f"--kubeconfig={self.kubeconfig(user)}",
            f"--cache-dir={self._layout.folder / 'kubectl-cache'}",
            "--request-timeout=30s",
            *arguments,
        ]
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)  # noqa: S603 # our own binary
        if done.returncode != 0:
            raise KubectlError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    # --- parts

    def memory(self) -> dict[str, int]:
        """Bytes of resident memory of what runs, by name."""
        return {name: process.memory for name, process in self._processes.items() if process.running}

    def restart_kueue(
        self, *, gates: Mapping[str, bool] | None = None, config: Mapping[str, object] | None = None
    ) -> None:
        """End Kueue and start it again on the same ports; returns when it is ready.

        Args:
            gates: feature gates from now on; None leaves them.
            config: merged into the configuration of this start, over that of the options.
        """
        self.process(KUEUE).end()
        if gates is not None:
            self.gates = dict(gates)
        self._write_kueue_configuration(config or {})
        self.process(KUEUE).start()
        self._await_kueue()

    def register_webhooks(self) -> None:
        """Register Kueue's webhooks; also again, where a test took them away."""
        port, bundle = self._taken.webhook, self._certificates.bundle
        furnishing.register_webhooks(self.api, self.kit, self.options, port=port, bundle=bundle)

    def remove_webhooks(self) -> None:
        """Take Kueue's webhooks away, until `register_webhooks`: the API server asks Kueue about nothing that is written."""
        for kind in ("validating", "mutating"):
            self.api.delete(f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations")

    def restart_apiserver(self) -> None:
        """End the API server as with `kill -9`, and start it again on its port and etcd's data.

        Watches of everybody break, and resume when it is back; returns when it is ready.
        """
        process = self.process(APISERVER)
        process.kill()
        process.start()
        self._await_apiserver()

    def rest(self) -> None:
        """Let all parts stand still until `wake`, who asks before who answers. Nothing is lost: no clock of theirs ends a node."""
        for process in reversed(self._processes.values()):
            if process.running:
                process.pause()

    def wake(self) -> None:
        """Let all parts go on after a rest; returns when the API server answers."""
        for process in self._processes.values():
            if process.running:
                process.resume()
        self._await_apiserver()

    def add_nodes(self, *shapes: NodeShape) -> None:
        """Add nodes; returns when pods can be bound to them."""
        self._create_nodes(shapes)
        self._await_nodes()

    def offer_gang_fit(self) -> None:
        """Make the check for gang fit, with the rights of the checker and of its watchdog."""
        self.api.apply(*furnishing.gang_fit(self.kit))

    def open_to_submissions(self, namespace: str) -> None:
        """Grant in a namespace what `deploy/kustomize/tenant` does: the admitter may act as its `fairlead-submitter`."""
        self.api.apply(*furnishing.submission_rights(self.kit, namespace))

    def open_to_slurm(self, namespace: str) -> None:
        """Grant what `deploy/kustomize/slurm-pods` does: slurm-bridge may run the pods of Slurm's jobs in a namespace."""
        self.api.apply(*furnishing.slurm_pod_rights(self.kit, namespace))

    def apply_examples(self) -> None:
        """Make the example queues: what `make lab-kube` shows."""
        self.api.apply(*furnishing.examples())

    def apply_files(self, *paths: Path) -> None:
        """Server-side apply of YAML files, as admin."""
        self.api.apply(*documents(*paths))

    def until[T](self, condition: Callable[[], T | None], seconds: float = 30.0, what: str = "") -> T:
        """Ask until the condition gives something true and return that; fails at once when a part has died.

        Raises:
            NeverHappenedError: the time is over.
            OwnProcessError: a part died.
        """
        return until(condition, seconds, what or repr(condition), *self._processes.values())

    # --- what happened

    def kueue_metrics(self) -> str:
        """Kueue's metrics, as Prometheus would read them."""
        with contextlib.closing(self._api_on(self._taken.metrics, users.ADMIN)) as api:
            return api.text("/metrics")

    @property
    def audit_log(self) -> Path:
        """The API server's audit log, an event a line."""
        return self._layout.audit_log

    def audit_mark(self) -> int:
        """The end of the audit log now, for `audit_lines(after=…)`."""
        return self.audit_log.stat().st_size

    def audit_lines(
        self,
        *,
        user: str | None = None,
        verb: str | None = None,
        resource: str | None = None,
        after: int = 0,
    ) -> list[AuditLine]:
        """Requests that the API server has answered: every write, and every read of Fairlead's users."""
        return audit.read(self.audit_log, user=user, verb=verb, resource=resource, after=after)

    # --- inside

    @property
    def _taken(self) -> Ports:
        if self._ports is None:
            raise KubeLabError("the lab was never started")
        return self._ports

    def _api_on(self, port: int, user: str) -> Api:
        authority = self._certificates.authority
        return Api(port, token_of(user, authority), authority)

    def _prepare(self) -> None:
        layout = self._layout
        layout.logs.mkdir(parents=True, exist_ok=True)
        layout.folder.chmod(0o700)  # tokens and keys
        self._ports = Ports.free()
        self._certificates.make()
        users.write_token_file(layout.tokens, self._certificates.authority)
        users.write_kubeconfigs(layout.kubeconfigs, self.server, self._certificates)
        layout.audit_policy.write_text(json.dumps(audit.POLICY))  # JSON is YAML
        furnishing.write_stages(self.kit, layout.stages)

    def _begin(self, name: str, command: list[str]) -> LabProcess:
        return self._launch(name, command, self._layout.logs, parts.environ(name, self.options))

    def _start_etcd(self, kinds: Iterable[KubeObject]) -> None:
        process = self._begin(ETCD, parts.etcd(self.kit, self._layout, self._taken))
        with contextlib.closing(EtcdGateway(self._taken.etcd)) as store:
            until(store.is_ready, READY_SECONDS, "etcd is ready", process)
            for kind in kinds:
                store.put_kind(kind)

    def _start_apiserver(self) -> None:
        command = parts.apiserver(self.kit, self._layout, self._taken, self._certificates, self.options)
        self._begin(APISERVER, command)
        self._await_apiserver()

    def _start_workers(self) -> None:
        if self.options.workers:
            self._begin(CONTROLLER_MANAGER, parts.controller_manager(self.kit, self._layout))
            self._begin(SCHEDULER, parts.scheduler(self.kit, self._layout))
            self._begin(KWOK, parts.kwok(self.kit, self._layout))

    def _start_kueue(self) -> None:
        self._write_kueue_configuration({})
        command = parts.kueue(self.kit, self._layout)
        pair = self._certificates.pair("kueue")
        self._begin(KUEUE, kueue_setup.with_certificates(command, pair, self._layout.folder / "kueue-etc"))

    def _write_kueue_configuration(self, more: Mapping[str, object]) -> None:
        ports = self._taken
        found = kueue_setup.configuration(
            self.options,
            gates=self.gates,
            webhook=ports.webhook,
            metrics=ports.metrics,
            health=ports.health,
            pair=self._certificates.pair("kueue"),
        )
        self._layout.kueue_configuration.write_text(json.dumps(kueue_setup.merged(found, more)))

    def _furnish(self) -> None:
        self.register_webhooks()
        self.api.apply(*furnishing.rights(self.kit))
        self._create_nodes(self.options.nodes)

    def _create_nodes(self, shapes: Iterable[NodeShape]) -> None:
        """Make Node objects; what they have can be told only when they are created."""
        for shape in shapes:
            for node in shape.nodes():
                self.api.create(node)

    def _await_apiserver(self) -> None:
        def ready() -> bool:
            with contextlib.suppress(ApiError, ApiUnreachableError):
                return self.api.text("/readyz") == "ok"
            return False

        waited_for = [self.process(ETCD), self.process(APISERVER)]
        until(ready, READY_SECONDS, "the API server is ready", *waited_for)

    def _await_kueue(self) -> None:
        def ready() -> bool:
            return self._kueue_is_ready() and furnishing.answers_webhooks(self.api)

        until(ready, READY_SECONDS, "Kueue is ready", self.process(APISERVER), self.process(KUEUE))

    def _kueue_is_ready(self) -> bool:
        url = f"http://{LOOPBACK}:{self._taken.health}/readyz"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # our own URL
                return bool(answer.status == 200)  # noqa: PLR2004 # OK
        except (urllib.error.URLError, OSError):
            return False

    def _await_nodes(self) -> None:
        if self.options.workers:
            self.until(
                lambda: furnishing.nodes_ready(self.api), READY_SECONDS, "pods can be bound to the nodes"
            )
