"""Other writers of priorities: two that write one field would fight for ever."""

from collections import Counter
from collections.abc import Iterator

from fairlead_cli.client.phrases import counted, listed
from fairlead_cli.findings import Finding, error
from fairlead_cli.kueue.doctor.kinds import ManagedObject
from fairlead_cli.kueue.doctor.survey import Survey, check
from fairlead_kube.kinds.workloads import PRIORITY_BOOST

OURS = "fairlead"
"""Beginning of the names of our own field managers."""
_KUEUE = "kueue"
"""Kueue's field manager: it co-owns all annotations since 0.12, as its status writes carry them along."""
_BOOSTER = "priority-booster"
_ANNOTATION = ("f:metadata", "f:annotations", f"f:{PRIORITY_BOOST}")
_PRIORITY = ("f:spec", "f:priority")


@check("boosts", "other-writer", fine="nobody else boosts Workloads", needs=("workloads",))
def _boosts(survey: Survey) -> Iterator[Finding]:
    yield from _others(survey, _ANNOTATION, "the annotation kueue.x-k8s.io/priority-boost")


@check(
    "priorities", "other-writer", fine="nobody else changes the priority of Workloads", needs=("workloads",)
)
def _priorities(survey: Survey) -> Iterator[Finding]:
    yield from _others(survey, _PRIORITY, "spec.priority")


def _others(survey: Survey, path: tuple[str, ...], field: str) -> Iterator[Finding]:
    found: Counter[str] = Counter()
    example: dict[str, ManagedObject] = {}
    for written in survey.written:
        managers = [name for name in written.writers(*path) if not name.startswith(_KUEUE)]
        if any(name.startswith(OURS) for name in managers):
            continue
        for name in managers:
            found[name] += 1
            example.setdefault(name, written)
    for name, count in sorted(found.items()):
        metadata = example[name].metadata
        yield error(
            f"Workload/{metadata.namespace}/{metadata.name}",
            f"{field} of {counted(count, 'Workload')} was written by {name!r}",
            why="if it goes on writing, the two undo each other's work; Fairlead would see a fight and stop",
            mend=f"stop {name!r} from writing, then take its values away:\n"
            f"kubectl -n {metadata.namespace} annotate workload {metadata.name} {PRIORITY_BOOST}-"
            if path is _ANNOTATION
            else f"stop {name!r} from writing; a WorkloadPriorityClass (label kueue.x-k8s.io/priority-class) sets a base",
        )


@check("booster", "priority-booster", fine="kueue-priority-booster does not run", needs=("deployments",))
def _booster(survey: Survey) -> Iterator[Finding]:
    for deployment in survey.deployments:
        images = [container.image for container in deployment.containers]
        metadata = deployment.metadata
        if _BOOSTER in metadata.name or any(_BOOSTER in image for image in images):
            yield error(
                f"Deployment/{metadata.namespace}/{metadata.name}",
                f"kueue-priority-booster runs here ({listed(images)})",
                why="it overwrites or clears every boost that is not its own",
                mend=f"kubectl -n {metadata.namespace} delete deployment {metadata.name}",
            )
