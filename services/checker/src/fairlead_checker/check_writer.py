"""Writes to the API server: states of checks, waits that end early, and that our checks have somebody who answers."""

from collections.abc import Sequence

from fairlead_checker.check_entries import Entry
from fairlead_checker.facts import CheckedWorkload
from fairlead_checker.instruments import CheckTraces
from fairlead_contracts.base.instants import Micros, to_datetime
from fairlead_contracts.base.observer import LibraryObserver
from fairlead_kube.client import KubeClient
from fairlead_kube.errors import ConflictError, KubeError, NotFoundError
from fairlead_kube.kinds.resources import ADMISSION_CHECKS, WORKLOADS

FIELD_MANAGER = "fairlead-checker"
"""Field manager of our applies. Kueue sends the whole list of checks itself: a merge patch would replace the others' entries."""


class CheckWriter:
    """Writes of one state of a Workload, or not at all: on a conflict it is looked at again.

    Args:
        client: the cluster's client.
        observer: hears of what is written, and of what goes wrong.
        traces: hears of what goes wrong.
        dry_run: whether only to say what would be written.
    """

    def __init__(
        self, client: KubeClient, observer: LibraryObserver, traces: CheckTraces, *, dry_run: bool
    ) -> None:
        self._traces = traces
        self._client = client
        self._observer = observer
        self._dry_run = dry_run

    async def state(self, workload: CheckedWorkload, entries: Sequence[Entry]) -> bool:
        """Write the states of our checks; gives whether they stand."""
        said = {str(one["state"]): one["message"] for one in entries}
        self._observer.note("check", workload=f"{workload.namespace}/{workload.name}", **said)
        body = {
            "metadata": {"namespace": workload.namespace, "resourceVersion": workload.version},
            "status": {"admissionChecks": list(entries)},
        }
        if self._dry_run:
            return True
        try:
            await self._client.apply(
                WORKLOADS, workload.name, body, workload.namespace,
                field_manager=FIELD_MANAGER, subresource="status",
            )  # fmt: skip
        except KubeError as error:
            return self._missed(workload, error)
        return True

    async def end_wait(self, workload: CheckedWorkload) -> bool:
        """Let a Workload back into its queue before its time is up; gives whether that is so."""
        self._observer.note("let in", workload=f"{workload.namespace}/{workload.name}")
        if self._dry_run:
            return True
        try:
            await self._client.merge_patch(
                WORKLOADS, workload.name, {"status": {"requeueState": {"requeueAt": None}}}, workload.namespace,
                resource_version=workload.version, subresource="status", field_manager=FIELD_MANAGER,
            )  # fmt: skip
        except KubeError as error:
            return self._missed(workload, error)
        return True

    async def activate(self, name: str, now: Micros) -> None:
        """Say that a check has somebody who answers. It is never taken back: Kueue stops every queue that names a check without."""
        condition = {
            "type": "Active",
            "status": "True",
            "reason": "Active",
            "message": "Fairlead's checker answers it, or after some time the watchdog in its place.",
            "lastTransitionTime": to_datetime(now).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        if self._dry_run:
            return
        try:
            await self._client.apply(
                ADMISSION_CHECKS, name, {"status": {"conditions": [condition]}},
                field_manager=FIELD_MANAGER, subresource="status",
            )  # fmt: skip
        except KubeError as error:
            self._observer.note("activate.failed", check=name, error=str(error))

    def _missed(self, workload: CheckedWorkload, error: KubeError) -> bool:
        if isinstance(error, ConflictError | NotFoundError):
            self._observer.count("check.outdated")
        else:
            name = f"{workload.namespace}/{workload.name}"
            self._observer.note("check.failed", workload=name, why=str(error))
            self._traces.failed(workload, str(error))
        return False
