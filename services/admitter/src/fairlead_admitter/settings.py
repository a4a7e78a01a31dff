"""The settings of an admitter."""

from typing import Annotated, Literal

import msgspec

from fairlead_runtime.settings import ServiceSettings


class AdmitterSettings(ServiceSettings, frozen=True, kw_only=True):
    """Settings of one admitter: the cluster that it serves, and how it writes."""

    cluster: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "sim"
    """The cluster that it serves; one leads per cluster, the others stand by."""
    frontend: Literal["bus", "kueue"] = "bus"
    """The way to the cluster's queueing system: Kueue's own API, or the bus, where the simulated cluster and every other
    frontend take their verbs."""
    kubeconfig: str | None = None
    """Path of the kubeconfig for Kueue; by default $KUBECONFIG, else the pod's own account, else ~/.kube/config."""
    context: str | None = None
    """Context of the kubeconfig; by default its current one."""
    kube_write_qps: Annotated[float, msgspec.Meta(gt=0)] = 20.0
    """Writes to the API server a second in the long run; each costs Kueue a webhook call and a scheduling attempt."""
    kube_write_burst: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 40
    """Writes to the API server at once after a rest."""
    kube_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 15.0
    """Longest wait for the API server's reply, in seconds."""
    submit_service_account: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "fairlead-submitter"
    """The service account of a tenant's namespace that is acted as to create the jobs submitted by it."""
    pod_service_account: Annotated[str, msgspec.Meta(min_length=1, max_length=253)] = "default"
    """The service account that pods of submitted jobs run as, without its token: it brings secrets to pull images."""
    template_annotation_prefixes: list[str] = msgspec.field(
        default_factory=lambda: ["nvidia.com/", "hami.io/"]
    )
    """Annotations that a submission may set on its pods, by what stands before the key's name; keys without a prefix
    may always be set. Others give rights on many clusters: to cloud roles, to other networks."""
    kube_believe_forbidden_seconds: Annotated[float, msgspec.Meta(ge=0, le=600)] = 10.0
    """Seconds for which a missing right must be the API server's only answer before a submission is refused for it:
    one that has just started refuses everybody for a moment."""
    kube_create_qps: Annotated[float, msgspec.Meta(gt=0)] = 20.0
    """Objects created for submissions a second in the long run, beside the writes of levels."""
    kube_create_burst: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 40
    """Objects created for submissions at once after a rest."""
    lever_probe_seconds: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 30.0
    """Seconds between two probes that ask Kueue, by two dry runs, whether it still obeys the lever that the leave to
    steer names. Sooner after its webhook was away, and when one dry run, sent every two seconds, shows another
    answer."""
    stale_after_seconds: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    """Seconds for which a pool may lack an order that can be followed before the admitter says so. It writes nothing
    from the first moment."""
    tick_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 1.0
    """Seconds until a pass is made although nothing changed: past the aging cap the order moves by time alone."""
    writes_in_flight: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 16
    """Requests with levels that may be on their way to the frontend at once: Kueue takes one level in each."""
    writes_per_pass: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 256
    """Level writes of one plan before what stands is looked at again."""
    pass_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 1.0
    """Longest time for which one plan is carried out before what stands is looked at again, in seconds."""
    frontend_timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 2.0
    """Longest wait for a frontend on the bus to reply to one request, in seconds."""
    submissions_in_progress: Annotated[int, msgspec.Meta(ge=1, le=2048)] = 64
    """Submissions that are taken in at once."""
    tenant_submits_per_second: Annotated[float, msgspec.Meta(gt=0)] = 1000.0
    """Submissions a second that one tenant may make in the long run; more are refused."""
    tenant_submits_burst: Annotated[int, msgspec.Meta(ge=1)] = 100_000
    """Submissions that one tenant may make at once after a rest."""
    tenant_waiting_jobs: Annotated[int, msgspec.Meta(ge=1)] = 200_000
    """Jobs of one tenant that may wait in the cluster; further submissions are refused until some have started."""
