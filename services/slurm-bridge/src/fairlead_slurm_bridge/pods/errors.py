"""Why a job cannot run as a pod, however often it is tried."""


class PodRefusedError(Exception):
    """The job is to blame; carries what to tell its user."""
