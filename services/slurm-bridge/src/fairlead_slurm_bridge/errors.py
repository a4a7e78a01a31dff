"""Errors that end a slurm-bridge, under one root; and errors of a job that can never run as a pod."""


class BridgeError(Exception):
    """The bridge cannot work as it is; carries why."""


class SubmissionStoreError(BridgeError):
    """The file with what the bridge remembers cannot be used; carries why."""


class PodRefusedError(Exception):
    """A job cannot run as a pod, and is itself to blame; carries what to tell its user."""


class NotPreparedError(Exception):
    """A script that is not for the gate: it would run on the node. The job is cancelled."""
