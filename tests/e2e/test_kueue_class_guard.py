"""deploy/kustomize/class-guard on a real API server: who may name a priority class."""

from pathlib import Path

import pytest
import yaml

from fairlead_testkit.kubelab import GPU, ApiError, KubeLab, KubeObject, things
from fairlead_testkit.kueue.namespace_fixture import QUEUE, NamespaceFixture
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.kube, pytest.mark.timeout(240)]

POLICIES = Path(__file__).parents[2] / "deploy" / "kustomize" / "class-guard" / "policies.yaml"
LABEL = "kueue.x-k8s.io/priority-class"


def guards(fixture: NamespaceFixture) -> list[KubeObject]:
    """The objects of the folder, under names of the fixture's own and for its namespaces alone: others use the server, too."""
    found: list[KubeObject] = list(yaml.safe_load_all(POLICIES.read_text()))
    namespaces = {
        "key": "kubernetes.io/metadata.name",
        "operator": "In",
        "values": sorted(fixture.namespaces.values()),
    }
    for item in found:
        item["metadata"]["name"] = fixture.named(item["metadata"]["name"])
        if item["kind"].endswith("Binding"):
            item["spec"]["policyName"] = fixture.named(item["spec"]["policyName"])
            item["spec"]["matchResources"] = {"namespaceSelector": {"matchExpressions": [namespaces]}}
    return found


def job(namespace: str, name: str, *, label: str = "", pods_class: str = "") -> KubeObject:
    item = things.job(name, namespace, QUEUE, {GPU: 1})
    if label:
        item["metadata"]["labels"][LABEL] = label
    if pods_class:
        item["spec"]["template"]["spec"]["priorityClassName"] = pods_class
    return item


def refusal(lab: KubeLab, item: KubeObject) -> str:
    """The server's reason for which the object cannot be made; empty where it can. Nothing is made."""
    try:
        lab.api.create(item, dryRun="All")
    except ApiError as error:
        return str(error)
    return ""


async def test_only_a_namespace_that_is_labelled_so_names_a_class(kube_lab: KubeLab) -> None:
    lab = kube_lab
    with NamespaceFixture(lab, ["granted", "other"]) as fixture:
        granted, other = fixture.namespaces["granted"], fixture.namespaces["other"]
        urgent, critical = fixture.named("urgent"), "system-cluster-critical"
        fixture.priority_class(urgent, 1000)
        before = lab.api.create(job(other, "before", label=urgent))
        mark = {f"class.fairlead.dev/{name}": "granted" for name in (urgent, critical)}
        lab.api.patch(f"/api/v1/namespaces/{granted}", {"metadata": {"labels": mark}})
        items = guards(fixture)
        lab.api.apply(*items)
        try:

            async def guarded() -> bool:
                return all(
                    refusal(lab, job(other, "one", **asked))
                    for asked in ({"label": urgent}, {"pods_class": critical})
                )

            await eventually(guarded, 60, what="both policies are in force")
            assert f"it has no label class.fairlead.dev/{urgent}" in refusal(
                lab, job(other, "one", label=urgent)
            )
            assert not refusal(lab, job(other, "one"))
            assert not refusal(lab, job(granted, "one", label=urgent))
            assert not refusal(lab, job(granted, "one", pods_class=critical))
            # What was there before is written on, and gets no other class.
            path = f"{lab.api.collection(before)}/before"
            lab.api.patch(path, {"metadata": {"annotations": {"a": "b"}}})
            with pytest.raises(ApiError, match="may not name priority class another"):
                lab.api.patch(path, {"metadata": {"labels": {LABEL: "another"}}})
            # Whoever joins a queue later brings no class along, either.
            outside = job(other, "outside", pods_class=critical)
            del outside["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
            path = f"{lab.api.collection(lab.api.create(outside))}/outside"
            lab.api.patch(path, {"metadata": {"annotations": {"a": "b"}}})
            with pytest.raises(ApiError, match=f"may not name priority class {critical}"):
                lab.api.patch(path, {"metadata": {"labels": {"kueue.x-k8s.io/queue-name": QUEUE}}})
            lab.api.delete(path)
        finally:
            for item in reversed(items):
                lab.api.delete(f"{lab.api.collection(item)}/{item['metadata']['name']}")
