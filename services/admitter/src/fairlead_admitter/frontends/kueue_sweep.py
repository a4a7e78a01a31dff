"""Leaving no trace in Kueue: our marks are taken off every Workload, those that run or finished too.

The state knows the levels of what is queued. What was admitted keeps its mark, and Kueue keeps finished Workloads; so
the API server is asked, by metadata alone, and only Workloads that carry a mark are looked at.
"""

from collections.abc import Callable, Collection

from fairlead_admitter.frontends.kueue_calls import KueueCalls, telling
from fairlead_admitter.frontends.kueue_levels import BASE_PRIORITY, noted_base
from fairlead_kube import PRIORITY_BOOST, KubeClient, PartialObject, Workload

_MARKS = {BASE_PRIORITY, PRIORITY_BOOST}


class KueueSweep:
    """Takes marks off Workloads.

    Args:
        client: of the cluster.
        calls: on its Workloads.
        queue_of: the ClusterQueue of a LocalQueue, by namespace and name; None for one that is not known.
    """

    def __init__(
        self, client: KubeClient, calls: KueueCalls, queue_of: Callable[[str, str], str | None]
    ) -> None:
        self._client = client
        self._calls = calls
        self._queue_of = queue_of

    async def sweep(self, queues: Collection[str], go_on: Callable[[], bool]) -> int:
        """Take our marks off all Workloads of these queues, as long as `go_on` says so.

        Returns:
            How many carried one.

        Raises:
            FrontendDownError: it may work later.
            FrontendForbiddenError: we have no right to.
            FrontendRefusedError: one of them stays marked.
        """
        resource = (await self._calls.workloads()).metadata()
        with telling("list Workloads"):
            found = await self._client.list(resource)
        cleaned = 0
        for marked in filter(_is_marked, found):
            if not go_on():
                break
            cleaned += await self._clean(marked, queues)
        return cleaned

    async def _clean(self, marked: PartialObject, queues: Collection[str]) -> bool:
        meta = marked.metadata
        workload = await self._calls.look(meta.namespace, meta.name, meta.uid)
        if workload is None or self._queue(workload) not in queues:
            return False
        await self._calls.patch(
            meta.namespace,
            meta.name,
            meta.uid,
            annotations=dict.fromkeys(_MARKS),
            priority=noted_base(workload),
        )
        return True

    def _queue(self, workload: Workload) -> str | None:
        if workload.status.admission is not None:
            return workload.status.admission.cluster_queue
        return self._queue_of(workload.metadata.namespace, workload.spec.queue_name)


def _is_marked(found: PartialObject) -> bool:
    return not _MARKS.isdisjoint(found.metadata.annotations or {})
