"""Making and cancelling jobs on Kubernetes, as the tenant's own service account.

The object's name is the submission's: made twice is made once. What stands under the name already tells by its digest
whether it was made from the same submission. The first pod of a group stands for all of them: whoever made it owns
the name, and completes the group, or takes it away where it cannot be whole.
"""

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass

import msgspec

from fairlead_admitter.frontends.kueue.manifests import (
    POD_GROUP_NAME,
    ManifestTerms,
    job_manifest,
    pod_manifests,
    pytorch_manifest,
)
from fairlead_admitter.frontends.kueue.names import name_of
from fairlead_admitter.frontends.kueue.pods import PodDocument, template_of
from fairlead_admitter.frontends.kueue.rights import FreshRefusals
from fairlead_admitter.frontends.kueue.tenant_calls import AnyResource, TenantCalls
from fairlead_admitter.intake.creation import CreatedJob, Creation, JobOrder, JobRefusedError, Removal
from fairlead_admitter.intake.entry_queue import EntryQueue
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import Micros
from fairlead_contracts.frontend.marks import DIGEST, SUBMISSION, SUBMITTED
from fairlead_contracts.messages.submissions import Cancellation
from fairlead_kube.client import KubeClient
from fairlead_kube.kinds.objects import PartialObject
from fairlead_kube.kinds.resources import JOBS, PODS, PYTORCH_JOBS

_MANAGED = "kueue.x-k8s.io/managed"
"""Label that Kueue's webhook gives the pods that it looks after."""
_JOBS, _PODS, _PYTORCH_JOBS = JOBS.metadata(), PODS.metadata(), PYTORCH_JOBS.metadata()


class ServiceAccounts(msgspec.Struct, frozen=True, kw_only=True):
    """Names of service accounts, the same in each tenant's namespace."""

    submit: str
    """Account that is acted as to create jobs."""
    pods: str
    """Account that the pods run as."""


@dataclass(eq=False)
class KueueJobs:
    """Makes jobs of submissions; see JobCreator."""

    client: KubeClient
    """The cluster's client, with writes of its own to spend: a flood of jobs must not hold levels back."""
    _: KW_ONLY
    entry: Callable[[str, str | None], EntryQueue | None]
    """The entry queue of a tenant that named a queue; None where there is none."""
    classes: Callable[[], Collection[str]]
    """Names of the cluster's WorkloadPriorityClasses."""
    accounts: ServiceAccounts
    """Service accounts: the one acted as, and the one that the pods run as."""
    refusals: FreshRefusals
    annotation_prefixes: Collection[str]
    """Prefixes of the annotations that a submission may set, with the `/`."""

    keeps_names = False

    def begin_anew(self) -> None:
        """Forgets what was refused; see JobCreator."""
        self.refusals.begin_anew()

    async def create(self, order: JobOrder) -> CreatedJob:
        """Make the job of a submission; see JobCreator."""
        entry = self.entry(order.scope, order.submission.queue)
        if entry is None:
            return CreatedJob(outcome=Creation.NO_QUEUE)
        terms = ManifestTerms(
            local_queue=entry.name,
            account=self.accounts.pods,
            classes=self.classes(),
            annotation_prefixes=self.annotation_prefixes,
        )
        calls = self._calls(order.scope)
        try:
            name = name_of(order.submission)
            making = _making(order, name, terms, calls)
            outcome = Creation.CONFLICT if await making.exists_as_another_kind() else await making.make()
        except FieldError as error:
            raise JobRefusedError(error) from error
        return CreatedJob(outcome=outcome, queue=entry.queue, job=name)

    async def cancel(self, wanted: Cancellation, before: Micros) -> Removal:
        """Delete the objects that were made of a submission, by their uids; see JobCreator."""
        calls = self._calls(wanted.tenant)
        outcome = Removal.GONE
        for resource, name in _first_names(wanted.id.lower()).items():
            found = await calls.glimpse(resource, name)
            if found is None:
                continue
            if not _is_of(wanted, found):
                outcome = Removal.FOREIGN
                continue
            # Both have as many digits; a word of the tenant's own spares a job of its own alone.
            if (found.metadata.annotation(SUBMITTED) or "") > str(before):
                outcome = Removal.LATER
                continue
            if resource is _PODS:
                await _delete_group(wanted, found, calls)
            else:
                await calls.delete(resource, found)
            return Removal.DONE
        # Costs as much as a deletion: a flood of cancellations asks the API server no more than a flood of jobs does.
        await self.client.writes.acquire()
        return outcome

    def _calls(self, namespace: str) -> TenantCalls:
        return TenantCalls(self.client, namespace, self.accounts.submit, self.refusals)


def _first_names(name: str) -> dict[AnyResource, str]:
    """The names that a job's object, or the first of its pods, would have."""
    return {_JOBS: name, _PODS: f"{name}-0", _PYTORCH_JOBS: name}


async def _delete_group(wanted: Cancellation, first: PartialObject, calls: TenantCalls) -> None:
    """Deletes a group by its Workload, with which Kueue deletes the pods; where Kueue made none yet, pod by pod.

    Kueue takes a group whose pods are gone before its Workload for one that succeeded.
    """
    group, uid = wanted.id.lower(), first.metadata.uid
    workload = await calls.workload(group)
    if workload is not None and uid in {owner.uid for owner in workload.metadata.owner_references or ()}:
        await calls.delete_workload(workload)
        return
    for pod in await calls.labelled(_PODS, f"{POD_GROUP_NAME}={group}"):
        if _is_of(wanted, pod) and pod.metadata.uid != uid:
            await calls.delete(_PODS, pod)
    await calls.delete(_PODS, first)  # whoever is killed before finds the group again by this one


def _is_of(wanted: Cancellation, found: PartialObject) -> bool:
    return found.metadata.annotation(SUBMISSION) == wanted.id


def _making(order: JobOrder, name: str, terms: ManifestTerms, calls: TenantCalls) -> "_OrderUnderway":
    match template_of(order.submission).kind:
        case "job":
            return _OneObject(order, name, calls, _JOBS, [job_manifest(order, terms)])
        case "pytorch-job":
            return _OneObject(order, name, calls, _PYTORCH_JOBS, [pytorch_manifest(order, terms)])
        case "pod-group":
            return _PodGroup(order, name, calls, _PODS, pod_manifests(order, terms))


@dataclass(eq=False)
class _OrderUnderway:
    """An order that is being carried out."""

    order: JobOrder
    name: str
    calls: TenantCalls
    resource: AnyResource
    manifests: list[PodDocument]

    async def make(self) -> Creation:
        """Make those objects of the job that aren't there."""
        raise NotImplementedError

    async def exists_as_another_kind(self) -> bool:
        """Whether the submission id has become an object of another kind: it was made from another body then."""
        for resource, name in _first_names(self.name).items():
            if resource is self.resource:
                continue
            found = await self.calls.glimpse(resource, name)
            if found is not None and found.metadata.annotation(SUBMISSION) == self.order.id:
                return True
        return False

    def _is_ours(self, found: PartialObject) -> bool:
        """Whether the object was made from this very submission."""
        return found.metadata.annotation(DIGEST) == self.order.submission.digest()

    async def _outcome_of_existing(self, name: str) -> Creation | None:
        """Whether the object of that name was made from this submission or another; None where it is gone again."""
        found = await self.calls.get(self.resource, name)
        if found is None:
            return None
        return Creation.EXISTS if self._is_ours(found) else Creation.CONFLICT


class _OneObject(_OrderUnderway):
    """A Job or a PyTorchJob."""

    async def make(self) -> Creation:
        """Make the object, unless it is there."""
        while await self.calls.create(self.resource, self.manifests[0]) is None:
            existing = await self._outcome_of_existing(self.name)
            if existing is not None:
                return existing
        return Creation.CREATED


class _PodGroup(_OrderUnderway):
    """Plain pods, made one after the other, the first one first."""

    async def make(self) -> Creation:
        """Make the pods that are not there, unless the group was whole before."""
        while (first := await self.calls.create(self.resource, self.manifests[0])) is None:
            existing = await self._outcome_of_existing(f"{self.name}-0")
            # Once it saw all pods, Kueue made the group's Workload, of its name: no pod is made again then.
            if existing is Creation.EXISTS and await self.calls.workload(self.name) is None:
                await self._complete()
            if existing is not None:
                return existing
        if first.metadata.label(_MANAGED) is None:
            await self._delete_group()
            raise FieldError(
                "template.kind",
                "pod-group",
                "is not managed by Kueue here: its framework `pod` is not enabled",
            )
        await self._complete()
        return Creation.CREATED

    async def _complete(self) -> None:
        there = {pod.metadata.name for pod in await self._pods()}
        try:
            for number, manifest in enumerate(self.manifests):
                pod = f"{self.name}-{number}"
                if pod not in there:
                    await self._make_member(pod, manifest)
        except JobRefusedError:
            await self._delete_group()
            raise

    async def _make_member(self, pod: str, manifest: PodDocument) -> None:
        while await self.calls.create(self.resource, manifest) is None:
            existing = await self._outcome_of_existing(pod)
            if existing is Creation.EXISTS:
                return
            if existing is Creation.CONFLICT:
                raise JobRefusedError(
                    FieldError("id", self.order.id, f"another pod has the name {pod} of one of its pods")
                )

    async def _delete_group(self) -> None:
        """Deletes the group's pods: a part of a group would wait at its gate for ever."""
        for pod in await self._pods():
            await self.calls.delete(self.resource, pod)

    async def _pods(self) -> list[PartialObject]:
        """The pods of the group that were made from this very submission."""
        found = await self.calls.labelled(self.resource, f"{POD_GROUP_NAME}={self.name}")
        return [pod for pod in found if self._is_ours(pod)]
