"""The meaning of an API server's answer: bytes, or the error that its Status tells of."""

import msgspec

from fairlead_kube.errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InternalError,
    InvalidError,
    NotFoundError,
    RefusedError,
    ServerError,
    Status,
    StatusError,
    ThrottledError,
    UnauthorizedError,
)

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
