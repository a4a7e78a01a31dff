"""What ends a slurm-bridge, as types under one root; and why a job cannot run as a pod, however often it is tried."""


class BridgeError(Exception):
    """The bridge cannot work as it is."""


class SubmissionStoreError(BridgeError):
    """The file with what is remembered cannot be used; carries why."""


class PodRefusedError(Exception):
    """The job is to blame; carries what to tell its user."""


class NotPreparedError(Exception):
    """A script that is not for the gate: it would run on the node. The job is cancelled."""
