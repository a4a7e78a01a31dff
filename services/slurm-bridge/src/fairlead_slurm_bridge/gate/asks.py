"""Demand of a pod that is to run somewhere. Pure."""

from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_kube.kinds.observed import observed_pods
from fairlead_kube.kinds.pods import Pod
from fairlead_policy.fit.observed import pod_shape


def pod_ask(pod: Pod) -> ObservedPods:
    """The pod's demand; a refusal names the pod.

    Raises:
        FieldError: a quantity cannot be read.
        VgpuRequestError: HAMi would not take what it asks of cards.
    """
    asked = observed_pods(pod, pod.metadata.name, 1)
    pod_shape(asked, by_cards=True)  # what HAMi would refuse is refused before room is looked for
    return asked
