"""Jobs published on NATS, and what their senders hear.

A submission is JSON on `fairlead.v1.submit.<cluster>.<tenant>`. The tenant of the subject counts. Its id is the
body's `id`, else the header Nats-Msg-Id, else `seq-<stream sequence>`: malformed input can be answered too. A body with
`"cancel": true` there takes the job of its id back: the stream has it behind the submission. Answers are JSON on `fairlead.v1.answer.<tenant>.<submission>`, at least once, in order.
"""

import difflib
import hashlib
import re
from functools import cache
from itertools import islice
from typing import Literal

import msgspec

from fairlead_contracts.base.codec import Codec, Message
from fairlead_contracts.base.errors import (
    SHOWN_CHARACTERS,
    ContractError,
    FieldError,
    MalformedError,
    UnsupportedVersionError,
    shown,
    why_unread,
)
from fairlead_contracts.base.instants import Moment
from fairlead_contracts.base.json_text import GIVEN_TWICE, JsonError, parse_json
from fairlead_contracts.base.quantities import Quantities, base_units, is_extended, parse_quantity
from fairlead_contracts.base.tokens import encode_token
from fairlead_contracts.frontend.templates import JobTemplate, read_template
from fairlead_contracts.messages.decisions import AS_IT_TRAVELS
from fairlead_contracts.messages.state import Outcome

MAX_PAYLOAD = 256 * 1024
"""Bytes of a submission's body. Larger ones are refused with an answer, up to what the server lets
through."""

MAX_ID = 128
_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_RESOURCE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]*[A-Za-z0-9])?")
MAX_RESOURCES = 64
"""The most resources in one demand. Each is checked by itself: twenty thousand of them, in a body that is not
too long, held the intake for 30 ms."""
MAX_PODS = 100_000
_MOST_WARNINGS = 8
"""The most warnings of each kind in one answer: a body may have any number of odd fields."""
_MOST_LOOKED_THROUGH = 16 * 1024
"""Bytes of a body in which duplicate keys are looked for: in the longest that may be sent it took 144 ms, and
nobody else was served."""
_OFTEN_MEANT = {
    "priority": "class",
    "resources": "demand",
    "requests": "demand",
    "name": "id",
    "gpus": "demand",
}
"""Names that people know fields by elsewhere, and our word for each."""
_OF_A_MANIFEST = (
    "is missing: a manifest of Kubernetes is not taken. Create it with kubectl, with a queue's name, and it is ordered there; "
    "or publish its demand, and what its pods run as template"
)
MAX_RUN_SECONDS = 366 * 86_400.0


class Submission(Message, frozen=True, kw_only=True, rename=AS_IT_TRAVELS):
    """A job that somebody asks for, as checked: quantities are in base units."""

    id: str
    tenant: str
    demand: Quantities
    """Amounts that the whole job asks for, all pods together."""
    pods: int = 1
    job_class: str | None = None
    """The class asked for; None takes the policy's last one."""
    queue: str | None = None
    """Queue for the job; None takes the tenant's queue."""
    run_seconds: float | None = None
    """Time for which it is expected to run. A simulated cluster runs it so long; others take it as an
    estimate."""
    run_limit_seconds: float | None = None
    labels: dict[str, str] = {}
    template: JobTemplate | None = None
    """Program to run. A simulated cluster runs nothing; a Kubernetes cluster refuses a submission without
    it."""
    frontend: str | None = None
    """Queueing system that it is for, as `kueue` or `slurm`: no other takes it. None takes any."""
    traceparent: str | None = None

    def digest(self) -> str:
        """Identifies the body: the same id with another digest is another job and is refused.

        Fields at their default do not count, so that a release with one more field gives the same digest to a
        submission that an older release has already made a job of.
        """
        told = {key: value for name, key, default in _told_of() if (value := getattr(self, name)) != default}
        return hashlib.blake2b(msgspec.json.encode(told, order="sorted"), digest_size=16).hexdigest()


@cache
def _told_of() -> tuple[tuple[str, str, object], ...]:
    """The fields that make a body what it is: as code names them, as they travel, and their defaults.

    To find them out costs a hundred digests.
    """
    fields = msgspec.structs.fields(Submission)
    return tuple(
        (
            field.name,
            field.encode_name,
            field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory(),
        )
        for field in fields
        if field.name != "traceparent"
    )


class Cancellation(msgspec.Struct, frozen=True):
    """The wish of a tenant to take a job back, as checked."""

    tenant: str
    id: str
    """The id under which the job was submitted."""


class _Body(msgspec.Struct, kw_only=True, rename={"job_class": "class"}):
    """The body as people write it; the types of the fields before their own rules."""

    v: int = 1
    id: str | None = None
    tenant: str | None = None
    cancel: bool = False
    demand: dict[str, msgspec.Raw]
    pods: int = 1
    job_class: str | None = None
    queue: str | None = None
    run_seconds: float | None = None
    run_limit_seconds: float | None = None
    labels: dict[str, str] = {}
    template: dict[str, object] | None = None
    frontend: str | None = None
    traceparent: str | None = None


_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(_Body)}
_DECODERS = {name: msgspec.json.Decoder(field.type) for name, field in _FIELDS.items()}
_EXPECTED = {
    "v": "must be a whole number",
    "cancel": "must be true or false",
    "demand": "must be an object of resources and quantities",
    "pods": "must be a whole number",
    "labels": "must be an object of strings",
    "template": "must be an object; it needs an image or a command",
    "run_seconds": "must be a number of seconds",
    "run_limit_seconds": "must be a number of seconds",
}
_OF_A_CANCELLATION = ("v", "id", "tenant", "cancel", "traceparent")
_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# Values stay as they were written until their field's turn: a number that fits nowhere must not hide the other fields.
_raw_object = msgspec.json.Decoder(dict[str, msgspec.Raw])
_whole_body = msgspec.json.Decoder(_Body)


def peek_id(payload: bytes) -> str | None:
    """The body's `id` where one can be read, however wrong the rest is: the answer must reach its sender."""
    try:
        found = _DECODERS["id"].decode(_raw_object.decode(payload)["id"])
    except (*_ERRORS, KeyError):
        return None
    return found if found and len(found) <= MAX_ID else None


def fallback_id(msg_id: str | None, stream_seq: int) -> str:
    """The submission's id where its body has none: the publisher's Nats-Msg-Id, else the place in the stream."""
    return msg_id or f"seq-{stream_seq}"


def answer_id(payload: bytes, msg_id: str | None, stream_seq: int) -> str:
    """The id under which the sender listens, however wrong the submission is."""
    for candidate in (peek_id(payload), msg_id):
        if candidate and len(candidate) <= MAX_ID and _is_token(candidate):
            return candidate
    return f"seq-{stream_seq}"


def _is_token(name: str) -> bool:
    try:
        encode_token(name)
    except FieldError:
        return False
    return True


def read_request(payload: bytes, *, tenant: str, fallback_id: str) -> Submission | Cancellation:
    """The submission, or the cancellation, in a payload, checked as far as the message alone tells.

    Args:
        payload: the body as published.
        tenant: the tenant of the subject that it was published on.
        fallback_id: the Nats-Msg-Id or `seq-<stream sequence>`, used where the body has no id.

    Raises:
        MalformedError: not a JSON object.
        UnsupportedVersionError: of another major schema version.
        FieldError: a field is missing or wrong; says which, what was found, and why.
    """
    found = _object(payload)
    if "cancel" in found and _value_of("cancel", found["cancel"]):
        return _cancellation(found, tenant)
    body = _body_in(payload, found)
    _check_tenant(body.tenant, tenant)
    return Submission(
        id=_checked_id(body.id if body.id is not None else fallback_id),
        tenant=tenant,
        demand=_checked_demand(body.demand),
        pods=_checked_pods(body.pods),
        job_class=body.job_class,
        queue=body.queue,
        run_seconds=_checked_seconds("run_seconds", body.run_seconds),
        run_limit_seconds=_checked_seconds("run_limit_seconds", body.run_limit_seconds),
        labels=body.labels,
        template=None if body.template is None else read_template(body.template),
        frontend=body.frontend,
        traceparent=body.traceparent,
    )


def read_submission(payload: bytes, *, tenant: str, fallback_id: str) -> Submission:
    """The submission in a payload, where nobody can be asked to cancel; see `read_request`."""
    found = read_request(payload, tenant=tenant, fallback_id=fallback_id)
    if isinstance(found, Cancellation):
        raise FieldError(
            "cancel",
            "true",
            "is for one cluster, on its own subject: the answer `accepted` names the cluster",
        )
    return found


def is_cancellation(payload: bytes) -> bool:
    """Whether a payload asks to cancel a job, however wrong the rest is."""
    try:
        return bool(_DECODERS["cancel"].decode(_raw_object.decode(payload)["cancel"]))
    except (*_ERRORS, KeyError):
        return False


def _cancellation(found: dict[str, msgspec.Raw], tenant: str) -> Cancellation:
    values = {name: _value_of(name, found[name]) for name in _FIELDS if name in found}
    for name, value in values.items():
        if name not in _OF_A_CANCELLATION:
            raise FieldError(name, value, "says something of a new job: a body with cancel has an id alone")
    _check_tenant(values.get("tenant"), tenant)
    if values.get("id") is None:
        raise FieldError("id", None, "is missing: it says which job to cancel")
    return Cancellation(tenant, _checked_id(str(values["id"])))


def field_of(error: ContractError, payload: bytes) -> FieldError:
    """The fault in a payload, as its sender is told: the field, the value found there, and why.

    Args:
        error: an error of `read_request`, or of a check after it.
        payload: the body as published.
    """
    match error:
        case FieldError():
            return error
        case UnsupportedVersionError():
            return FieldError("v", error.found, str(error))
        case _:
            return FieldError("body", payload[:SHOWN_CHARACTERS].decode(errors="replace"), str(error))


def unheeded(payload: bytes) -> list[str]:
    """The parts of a body that count for nothing, in words: unknown fields, and keys that are given twice.

    Unknown fields are taken, so that a sender may be newer than who reads; but one that is misspelt is worth a word.
    """
    names = (name for name in _raw_object.decode(payload) if name not in _FIELDS)
    unknown = islice(names, _MOST_WARNINGS)
    return [*map(_unknown, unknown), *_twice_in(payload)]


def _twice_in(payload: bytes) -> list[str]:
    if len(payload) > _MOST_LOOKED_THROUGH:
        return [
            f"the body is longer than {_MOST_LOOKED_THROUGH} bytes, so nobody looked for keys that are given twice"
        ]
    try:
        _, problems = parse_json(payload, most=_MOST_WARNINGS)
    except JsonError:
        return []  # deeper or longer than any field of a job, in one that counts for nothing: that is told
    return [f"{one.field}: {one.reason}" for one in problems if one.reason == GIVEN_TWICE]


def _unknown(name: str) -> str:
    meant = difflib.get_close_matches(name[:MAX_ID], [*_FIELDS, *_OFTEN_MEANT], 1)
    known = _OFTEN_MEANT.get(meant[0], meant[0]) if meant else ""
    hint = f"; did you mean {known}?" if known else ""
    return f"{shown(name)} is not a field of a job, so it counts for nothing{hint}"


_LONGEST_READ = 4 * SHOWN_CHARACTERS
"""Bytes of so many characters at least."""


def _object(payload: bytes) -> dict[str, msgspec.Raw]:
    if len(payload) > MAX_PAYLOAD:
        raise FieldError("body", f"{len(payload)} bytes", f"a submission may have {MAX_PAYLOAD} bytes")
    try:
        payload.decode()  # a part that nobody reads is not looked into below
        return _raw_object.decode(payload)
    except msgspec.ValidationError as error:
        raise MalformedError("the body must be a JSON object") from error
    except UnicodeDecodeError as error:
        raise MalformedError(
            f"the body is not valid JSON: its text must be in UTF-8 (byte {error.start})"
        ) from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise MalformedError(f"the body is not valid JSON: {why_unread(error)}") from error


def _body_in(payload: bytes, found: dict[str, msgspec.Raw]) -> _Body:
    """The body in one go where nothing is wrong with it; else field by field, which costs six times as much."""
    try:
        body = _whole_body.decode(payload)
    except _ERRORS:
        return _typed(found)
    return body if body.v == Submission.VERSION else _typed(found)


def _typed(found: dict[str, msgspec.Raw]) -> _Body:
    """The body, read field by field, the version first, so that an error can show the field and its value."""
    values: dict[str, object] = {}
    for name, field in _FIELDS.items():
        if name not in found:
            if field.required:
                raise FieldError(name, None, _OF_A_MANIFEST if "apiVersion" in found else "is missing")
            continue
        values[field.name] = _value_of(name, found[name])
    return _Body(**values)  # type: ignore[arg-type] # each value was decoded as its field's type above


def _value_of(name: str, raw: msgspec.Raw) -> object:
    try:
        value: object = _DECODERS[name].decode(raw)
    except _ERRORS as error:
        raise FieldError(name, _readable(raw), _EXPECTED.get(name, "must be a string")) from error
    if name == "v" and value != Submission.VERSION:
        raise UnsupportedVersionError("submission", value, Submission.VERSION)
    return value


def _check_tenant(found: object, tenant: str) -> None:
    if found is not None and found != tenant:
        raise FieldError("tenant", found, f"the subject names tenant {tenant!r}, and the subject counts")


def _readable(raw: msgspec.Raw) -> object:
    """A refused value for its error: as Python has it, else as it was written. So is one that is cut for it anyway."""
    if len(bytes(raw)) > _LONGEST_READ:
        return raw
    try:
        return msgspec.json.decode(raw)
    except _ERRORS:
        return bytes(raw).decode(errors="replace")


def _checked_id(found: str) -> str:
    if len(found) > MAX_ID or not _ID.fullmatch(found):
        raise FieldError(
            "id",
            found,
            f"an id has up to {MAX_ID} letters, digits, '.', '-' or '_', and starts and ends with a letter or digit",
        )
    return found


def _checked_demand(found: dict[str, msgspec.Raw]) -> dict[str, int]:
    if len(found) > MAX_RESOURCES:
        raise FieldError(
            "demand", f"{len(found)} resources", f"a job may ask for up to {MAX_RESOURCES} resources"
        )
    demand: Quantities = {}
    for resource, raw in found.items():
        field = f"demand.{resource}"
        value = _readable(raw)
        if len(resource) > MAX_ID or not _RESOURCE.fullmatch(resource):
            raise FieldError(field, value, "is not the name of a resource")
        amount = parse_quantity(resource, value, field=field)
        if is_extended(resource) and amount % base_units(resource):
            raise FieldError(field, value, "must be a whole number: Kubernetes divides no extended resource")
        if amount:
            demand[resource] = amount
    if not demand:
        raise FieldError("demand", sorted(found), "a job must ask for something")
    return demand


def _checked_pods(found: int) -> int:
    if not 1 <= found <= MAX_PODS:
        raise FieldError("pods", found, f"must lie between 1 and {MAX_PODS}")
    return found


def _checked_seconds(field: str, found: float | None) -> float | None:
    if found is not None and not 0 < found <= MAX_RUN_SECONDS:
        raise FieldError(field, found, f"must be positive and at most {MAX_RUN_SECONDS:.0f}")
    return found


class Answer(Message, frozen=True, kw_only=True):
    """An answer to the sender of a submission."""

    id: str
    tenant: str
    cluster: str
    at: Moment
    repeated: bool | msgspec.UnsetType = msgspec.UNSET
    """Whether the same id came again with the same body: this is the last word on the job that it names
    already, and nothing new runs. Left out otherwise."""


class Accepted(
    Answer, frozen=True, kw_only=True, tag_field="kind", tag="accepted", rename={"job_class": "class"}
):
    """The job stands in a queue."""

    job: str
    queue: str
    job_class: str = ""
    """`class` where it is written; empty from an admitter of an earlier release."""
    warnings: list[str] = []
    """Warnings of parts of the body that count for nothing: fields that nobody knows, and keys that are given
    twice."""


class Refused(Answer, frozen=True, kw_only=True, tag_field="kind", tag="refused"):
    """The job was not taken: which field, what was found there, why, and what to do."""

    field: str
    value: str
    reason: str


class Started(Answer, frozen=True, kw_only=True, tag_field="kind", tag="started"):
    """The frontend admitted the job."""

    job: str
    waited_seconds: float


class Cancelling(Answer, frozen=True, kw_only=True, tag_field="kind", tag="cancelling"):
    """The frontend was told to take the job away. What follows is `ended`."""


class Ended(Answer, frozen=True, kw_only=True, tag_field="kind", tag="ended"):
    """The job ended. The last answer of a submission."""

    job: str
    outcome: Outcome
    ran_seconds: float


type AnyAnswer = Accepted | Refused | Started | Cancelling | Ended


def says_cancelled(answer: AnyAnswer | None) -> bool:
    """Whether an answer says that the job is being cancelled, or was."""
    return isinstance(answer, Cancelling) or (
        isinstance(answer, Ended) and answer.outcome is Outcome.CANCELLED
    )


ANSWER: Codec[AnyAnswer] = Codec(Accepted | Refused | Started | Cancelling | Ended, "answer", packed=False)


class DeadLetter(Message, frozen=True, kw_only=True):
    """A message that failed its last delivery, put aside with the reason."""

    subject: str
    stream_seq: int
    deliveries: int
    reason: str
    payload: bytes
    at: Moment


DEAD_LETTER: Codec[DeadLetter] = Codec(DeadLetter, "dead letter", packed=False)

type RefusalReason = Literal[
    "malformed",
    "version",
    "field",
    "tenant",
    "class",
    "resource",
    "size",
    "conflict",
    "queue",
    "rate",
    "backlog",
    "storage",
    "cancel",
]
"""The bounded label of the refusal counter."""
