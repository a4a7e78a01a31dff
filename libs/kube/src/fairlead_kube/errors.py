"""The errors of this library, under one root.

Whether a retry of the same call can succeed is visible in the type: `RetryableKubeError` or `FatalKubeError`. What an
API server answered comes with the `metav1.Status` that it sent; which error it is, is decided by HTTP code and
`reason`, never by the message.
"""

import msgspec


class StatusCause(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A fault, of several perhaps, for which an API server refused a request."""

    field: str = ""
    """Path of the field, such as `spec.podSets[0].count`."""
    message: str = ""
    reason: str = ""
    """Kind of the fault, such as `FieldValueInvalid`."""


class StatusDetails(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The object that a Status is about."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: list[StatusCause] | None = None
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An API server's word that something went wrong (metav1.Status)."""

    code: int = 0
    reason: str = ""
    """Kind of the error, such as `Forbidden`, `Invalid`, `Expired`; empty where the server says none."""
    message: str = ""
    details: StatusDetails | None = None

    @property
    def causes(self) -> list[StatusCause]:
        """The faults, field by field."""
        return (self.details.causes or []) if self.details else []


class KubeError(Exception):
    """Anything that goes wrong between us and a Kubernetes API server."""


class RetryableKubeError(KubeError):
    """The same call may succeed later."""


class FatalKubeError(KubeError):
    """The same call cannot succeed, however often it is made."""


class ConfigurationError(FatalKubeError):
    """The way to the cluster is not known: kubeconfig, context, certificates or service account."""


class MissingKubeconfigError(ConfigurationError):
    """No kubeconfig is where one was looked for, and we do not run in a cluster."""


class UnknownContextError(ConfigurationError):
    """The kubeconfig has no such context; carries those that it has."""

    def __init__(self, context: str, known: list[str]) -> None:
        shown = ", ".join(known) or "none"
        super().__init__(f"the kubeconfig has no context {context!r}; it has: {shown}")
        self.context = context
        self.known = known


class CredentialsError(ConfigurationError):
    """A token, certificate or credential plugin gave nothing to sign in with."""


class MalformedAnswerError(FatalKubeError):
    """The server answered with something that is not of the shape asked for."""


class UnreachableError(RetryableKubeError):
    """No connection, or one that broke before the answer was complete; the request may have been done."""


class TimedOutError(RetryableKubeError):
    """No answer in time; the request may have been done."""


class StatusError(KubeError):
    """The API server refused.

    `status` says how, `request` says what (method and path), `retry_after` is the pause in seconds that the server
    asks for, 0 where it names none.
    """

    def __init__(self, status: Status, request: str = "", *, retry_after: float = 0.0) -> None:
        prefix = f"{request}: " if request else ""
        super().__init__(f"{prefix}{status.message or status.reason or 'refused'} (HTTP {status.code})")
        self.status = status
        self.request = request
        self.retry_after = retry_after

    @property
    def causes(self) -> list[StatusCause]:
        """The faults, field by field."""
        return self.status.causes


class ThrottledError(StatusError, RetryableKubeError):
    """HTTP 429: too many requests."""


class ServerError(StatusError, RetryableKubeError):
    """HTTP 5xx: a fault of the server's own."""


class InternalError(ServerError):
    """HTTP 500 `InternalError`, as also where an admission webhook does not answer.

    The API server gives no reason or detail of its own for a webhook's outage, so that no type tells it apart.
    """


class ConflictError(StatusError, RetryableKubeError):
    """HTTP 409: the object changed meanwhile. Read it again, then write."""


class UnauthorizedError(StatusError, FatalKubeError):
    """HTTP 401: the credentials are not accepted, also after they were read again."""


class ForbiddenError(StatusError, FatalKubeError):
    """HTTP 403: no right to do this, or an admission plugin or webhook said no."""

    @property
    def by_webhook(self) -> bool:
        """Whether a webhook said no: RBAC and built-in admission name the kind in the details, a webhook does not."""
        return self.status.details is None or not self.status.details.kind


class NotFoundError(StatusError, FatalKubeError):
    """HTTP 404: no such object, or no such kind."""


class AlreadyExistsError(StatusError, FatalKubeError):
    """HTTP 409 `AlreadyExists`: an object of this name is there."""


class InvalidError(StatusError, FatalKubeError):
    """HTTP 422 `Invalid`: `causes` names each field."""


class ExpiredError(StatusError, FatalKubeError):
    """HTTP 410: the resource version or continue token is too old. List again."""


class RefusedError(StatusError, FatalKubeError):
    """Any other HTTP 4xx."""


_BY_CODE: dict[int, type[StatusError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
    429: ThrottledError,
}
_SHOWN = 300
_SERVERS_FAULT, _INTERNAL = 500, "InternalError"
_STATUS = msgspec.json.Decoder(Status)


def read_status(code: int, body: bytes) -> Status:
    """The Status in the answer; where a proxy, say, answered, one with its text as the message."""
    try:
        status = _STATUS.decode(body)
    except msgspec.DecodeError:
        return Status(code=code, message=body[:_SHOWN].decode("utf-8", "replace").strip())
    return status if status.code else msgspec.structs.replace(status, code=code)


def error_of(status: Status, request: str = "", retry_after: str | None = None) -> StatusError:
    """The error that a Status means; `retry_after` is the header of that name."""
    # The HTTP date that the standard allows there, too, counts as nothing.
    told = float(retry_after) if retry_after and retry_after.isdecimal() else 0.0
    pause = told or float(status.details.retry_after_seconds if status.details else 0)
    return _kind(status)(status, request, retry_after=pause)


def _kind(status: Status) -> type[StatusError]:
    if status.code >= _SERVERS_FAULT:
        return InternalError if status.reason == _INTERNAL else ServerError
    if status.reason == "AlreadyExists":
        return AlreadyExistsError
    return _BY_CODE.get(status.code, RefusedError)
