"""Errors of a server's refusals, told apart by code and reason alone."""

import msgspec
import pytest

from fairlead_kube.errors import (
    AlreadyExistsError,
    ConflictError,
    ExpiredError,
    ForbiddenError,
    InternalError,
    InvalidError,
    KubeError,
    NotFoundError,
    RefusedError,
    RetryableKubeError,
    ServerError,
    StatusError,
    ThrottledError,
    UnauthorizedError,
    error_of,
    read_status,
)


def refusal_of(code: int, reason: str, details: object = None, retry_after: str | None = None) -> StatusError:
    body = {"kind": "Status", "reason": reason, "message": "because", "details": details}
    return error_of(read_status(code, msgspec.json.encode(body)), "GET /nodes", retry_after)


@pytest.mark.parametrize(
    ("refusal", "expected", "retryable"),
    [
        ((400, "BadRequest"), RefusedError, False),
        ((403, "Forbidden"), ForbiddenError, False),
        ((404, "NotFound"), NotFoundError, False),
        ((409, "Conflict"), ConflictError, True),
        ((409, "AlreadyExists"), AlreadyExistsError, False),
        ((410, "Expired"), ExpiredError, False),
        ((410, "Gone"), ExpiredError, False),
        ((422, "Invalid"), InvalidError, False),
        ((429, "TooManyRequests"), ThrottledError, True),
        ((500, "InternalError"), InternalError, True),
        ((503, "ServiceUnavailable"), ServerError, True),
        ((504, "Timeout"), ServerError, True),
    ],
)
def test_each_refusal_has_its_error(
    refusal: tuple[int, str], expected: type[KubeError], retryable: bool
) -> None:
    causes = {
        "causes": [{"field": "spec.x", "message": "odd", "reason": "FieldValueInvalid"}],
        "kind": "nodes",
    }
    error = refusal_of(*refusal, causes)
    assert type(error) is expected
    assert isinstance(error, RetryableKubeError) is retryable
    assert [(cause.field, cause.message) for cause in error.causes] == [("spec.x", "odd")]
    assert str(error) == f"GET /nodes: because (HTTP {refusal[0]})"


@pytest.mark.parametrize(
    ("details", "header", "seconds"),
    [
        (None, "7", 7.0),
        ({"retryAfterSeconds": 3}, None, 3.0),
        (None, "Wed, 21 Oct 2026 07:28:00 GMT", 0.0),
        (None, None, 0.0),
    ],
)
def test_how_long_to_wait_is_told_by_header_or_by_details(
    details: object, header: str | None, seconds: float
) -> None:
    assert refusal_of(429, "TooManyRequests", details, header).retry_after == seconds
    assert refusal_of(503, "", details, header).retry_after == seconds


@pytest.mark.parametrize(("details", "by_webhook"), [(None, True), ({}, True), ({"kind": "nodes"}, False)])
def test_a_refusal_of_a_webhook_is_told_from_one_of_rbac(details: object, by_webhook: bool) -> None:
    error = refusal_of(403, "Forbidden", details)
    assert isinstance(error, ForbiddenError)
    assert error.by_webhook is by_webhook


@pytest.mark.parametrize("body", [b"<html>no</html>", b"", b"[]", b"\xff"])
def test_an_answer_that_is_no_status_is_told_by_its_code(body: bytes) -> None:
    assert isinstance(error_of(read_status(502, body)), ServerError)
    assert isinstance(error_of(read_status(401, body)), UnauthorizedError)
