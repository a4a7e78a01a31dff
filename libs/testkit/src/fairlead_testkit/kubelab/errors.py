"""Errors of the lab of Kubernetes, as types under one root."""

from fairlead_testkit.labs import LabError


class KubeLabError(LabError):
    """The lab did not do as it was told."""


class GoMissingError(KubeLabError):
    """The lab is not built yet and there is no Go to build with; the message says how to get it."""


class BuildError(KubeLabError):
    """Go could not build a binary, or a module did not hold what was expected; carries what Go said."""


class NotMountableError(KubeLabError):
    """Kueue needs a mount namespace of its own, and this machine allows none."""


class KubectlError(KubeLabError):
    """kubectl ended with an error; carries what it wrote."""


class ApiError(KubeLabError):
    """The API server refused a request.

    Attributes:
        status: the HTTP status code.
        reason: Kubernetes' word for it, as `Conflict` or `Forbidden`; empty where it gave none.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason


class ApiUnreachableError(KubeLabError):
    """No answer from the API server; worth another try."""
