"""The errors of the admitter, under one root."""


class AdmitterError(Exception):
    """Anything that goes wrong between a decision or a submission and the frontend."""


class FrontendDownError(AdmitterError):
    """The frontend does not answer. Retryable: what was asked for may or may not have been done."""


class FrontendRefusedError(AdmitterError):
    """The frontend understood and says no. The same request will be refused again."""
