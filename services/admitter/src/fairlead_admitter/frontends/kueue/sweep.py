"""Leaving no trace in Kueue: our marks are taken off every Workload, those that run or finished too.

The state knows the levels of what is queued. What was admitted keeps its mark, and Kueue keeps finished Workloads; so
the API server is asked, by metadata alone, and only Workloads that carry a mark are looked at.
"""

from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass

import msgspec

from fairlead_admitter.errors import AdmitterError, FrontendBalkedError, FrontendRefusedError
from fairlead_admitter.frontends.kueue.calls import KueueCalls
from fairlead_contracts.frontend.marks import BASE_PRIORITY
from fairlead_contracts.messages.leave import LeverName
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.kinds.workloads import PRIORITY_BOOST, Workload, found_priority

_MARKS: Mapping[LeverName | None, frozenset[str]] = {
    None: frozenset({BASE_PRIORITY, PRIORITY_BOOST}),
    "boost": frozenset({PRIORITY_BOOST}),
    "priority": frozenset({BASE_PRIORITY}),
}
"""The annotations that each lever leaves; None stands for both levers."""
_BALKED_IN_A_ROW = 5
"""Failures in a row after which a single Workload is not the cause any more."""


@dataclass(eq=False)
class KueueSweep:
    """Takes marks off Workloads."""

    calls: KueueCalls
    queue_of: Callable[[str, str], str | None]
    """The ClusterQueue of a LocalQueue, by namespace and name; None for one that is not known."""
    queues: Container[str]
    """The ClusterQueues that there are."""

    async def sweep(
        self, queues: Collection[str], go_on: Callable[[], bool], only: LeverName | None = None
    ) -> int:
        """Take our marks off all Workloads of these queues, as long as `go_on` says so.

        Workloads whose queue is gone are of no pool, and are cleaned with any pool. A Workload that cannot be cleaned
        keeps its mark; the others are cleaned all the same.

        Returns:
            How many Workloads carried a mark.

        Raises:
            FrontendDownError: all of them fail; it may work later.
            FrontendForbiddenError: the right to it is missing.
            FrontendRefusedError: some of them stay marked; all others were cleaned.
        """
        cleaned = 0
        refused: list[AdmitterError] = []
        balked = 0
        marks = _MARKS[only]
        for marked in await self.calls.list_metadata():
            if marks.isdisjoint(marked.metadata.annotations or {}):
                continue
            if not go_on():
                break
            try:
                cleaned += await self._clean(marked, queues, marks)
                balked = 0
            except FrontendRefusedError as error:
                refused.append(error)
            except FrontendBalkedError as error:
                refused.append(error)
                balked += 1
                if balked == _BALKED_IN_A_ROW:
                    raise
        if refused:
            raise FrontendRefusedError(f"{len(refused)} Workloads stay marked: {refused[0]}") from refused[0]
        return cleaned

    async def _clean(self, marked: PartialObject, queues: Collection[str], marks: frozenset[str]) -> bool:
        meta = marked.metadata
        workload = await self.calls.look(meta.namespace, meta.name, meta.uid)
        if workload is None or not self._is_due(workload, queues):
            return False
        await self.calls.patch(
            meta.namespace,
            meta.name,
            meta.uid,
            annotations=dict.fromkeys(marks),
            priority=found_priority(workload) if BASE_PRIORITY in marks else msgspec.UNSET,
        )
        return True

    def _is_due(self, workload: Workload, queues: Collection[str]) -> bool:
        """Whether the Workload is of one of these queues, or of one that is gone."""
        admission, queue_of = workload.status.admission, self.queue_of
        meta, local = workload.metadata, workload.spec.queue_name
        queue = queue_of(meta.namespace, local) if admission is None else admission.cluster_queue
        return queue in queues or queue is None or queue not in self.queues
