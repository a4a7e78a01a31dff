"""The last writer of what a Workload is ordered by, as the API server tells it."""

import msgspec

from fairlead_kube.kinds.workloads import PRIORITY_BOOST, WorkloadMeta, lever_owner

type Fields = dict[str, object]

BOOST: Fields = {"f:metadata": {"f:annotations": {f"f:{PRIORITY_BOOST}": {}}}}
PRIORITY: Fields = {"f:spec": {"f:priority": {}}}


def written(manager: str, fields: Fields, operation: str = "Update", subresource: str = "") -> Fields:
    return {"manager": manager, "operation": operation, "subresource": subresource, "fieldsV1": fields}


def owner(*managed: Fields, boost: str | None = "5") -> str:
    annotations = {} if boost is None else {PRIORITY_BOOST: boost}
    return lever_owner(
        msgspec.convert({"annotations": annotations, "managedFields": list(managed)}, WorkloadMeta)
    )


def test_who_wrote_the_boost_is_told_and_not_who_owns_it_by_a_write_to_the_status() -> None:
    """Kueue's writes to the status own each annotation, and have written none."""
    status = written("kueue-admission", BOOST, "Apply", "status")
    first = written("kueue", PRIORITY)
    applied = written("applier", BOOST, "Apply")
    assert owner(first, status, applied, written("jane", BOOST)) == "jane"
    assert owner(first, status, applied) == "applier"
    assert owner(first, status) == ""


def test_without_a_boost_it_is_who_wrote_the_priority() -> None:
    assert owner(written("kueue", PRIORITY), written("jane", BOOST), boost=None) == "kueue"
    assert owner(written("jane", {"f:status": {}}), boost=None) == ""
    assert owner() == ""
