"""Annotations of Fairlead's on objects of a cluster: who creates or steers a job writes them, who watches it reads them.

The two are different services that share nothing else but these names.
"""

OWN_PREFIX = "fairlead.dev/"
SUBMISSION = OWN_PREFIX + "submission"
"""The id under which the job was submitted on NATS."""
SUBMITTED = OWN_PREFIX + "submitted"
"""The instant at which the submission came in, in microseconds: no cancellation before it is for the job."""
DIGEST = OWN_PREFIX + "digest"
"""The digest of the submission's body: tells a repetition from another job of the same id."""
TRACEPARENT = OWN_PREFIX + "traceparent"
"""The W3C trace context that it was submitted with."""
CARRIES = OWN_PREFIX + "carries"
"""The uid of a job of another cluster that the job carries out."""
BASE_PRIORITY = OWN_PREFIX + "base-priority"
"""The priority that a job had before its first level was written into `spec.priority`."""
NO_PRIORITY = "none"
"""The word written for a base priority where the job had none at all, which counts as 0."""
LEVEL_WRITER = "fairlead"
"""The name under which an admitter writes levels: an API server keeps with each field who wrote it last."""
GANG_FIT = "gang-fit"
"""The AdmissionCheck that the checker answers, by the name that it has as it ships
(deploy/kustomize/gang-fit)."""
WATCHDOG = OWN_PREFIX + "watchdog"
"""Note on a ClusterQueue that the watchdog made BestEffortFIFO: what it was, since when, and why."""
ZONE_KEY = OWN_PREFIX + "zone-key"
"""Note on a pod template: a label of nodes whose value all nodes of the job shall share. The check for gang
fit goes by it."""
ASK_PREFIX = "wdrf.x-k8s.io/"
"""Prefix of annotations with a class's name behind it: the job asks for that class. The WDRF controller's own
annotations."""
