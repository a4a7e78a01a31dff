"""The errors of the admitter, under one root."""


class AdmitterError(Exception):
    """A failure between a decision or a submission and the frontend."""


class FrontendDownError(AdmitterError):
    """The frontend does not answer. Retryable: what was asked for may or may not have been done.

    `retry_after`: seconds that it asked us to wait for; 0 where it named none.
    """

    def __init__(self, text: str, *, retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.retry_after = retry_after


class FrontendBalkedError(FrontendDownError):
    """The frontend answers, and failed at this one request: another one may go well at the same time."""


class FrontendSlowError(FrontendBalkedError):
    """The frontend did not answer this one request in time: it is slow to one, or hangs for all."""


class FrontendForbiddenError(AdmitterError):
    """The frontend knows us and lets us do nothing of this kind. Somebody has to give us the right to."""


class FrontendForbiddenHereError(FrontendForbiddenError):
    """A refusal of this for this job, or in its scope; another one may go well at the same time."""


class FrontendRefusedError(AdmitterError):
    """The frontend understood and says no. The same request will be refused again."""
