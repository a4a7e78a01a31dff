"""What ends a slurm-bridge, as types under one root."""


class BridgeError(Exception):
    """The bridge cannot work as it is."""


class SubmissionStoreError(BridgeError):
    """The file with what is remembered cannot be used; carries why."""
