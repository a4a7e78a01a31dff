"""Why a job cannot run as a pod, however often it is tried."""


class PodRefusedError(Exception):
    """The job is to blame; carries what to tell its user."""


class NotPreparedError(Exception):
    """A script that is not for the gate: it would run on the node. The job is cancelled."""
