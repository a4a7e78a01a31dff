"""Questions as they come over NATS: what is wrong with one is told by its field, its value and what must stand there."""

from typing import NoReturn

import msgspec

from fairlead_bus import Asked, Rejected
from fairlead_contracts.base.codec import Codec, Message, to_json
from fairlead_contracts.base.errors import ContractError, FieldError, MalformedError, shown
from fairlead_contracts.base.json_text import JsonError, parse_json
from fairlead_contracts.base.reading import StructReader, no_mapping
from fairlead_contracts.base.tokens import NO_NAME, decode_token
from fairlead_contracts.messages.questions import Problem

_LONGEST_EXPLAINED = 16 * 1024
"""Bytes of a question that is looked through for what is wrong with it: whoever sends more shall keep nobody waiting."""


def read_question[T: Message](codec: Codec[T], asked: Asked) -> T:
    """The question; an empty payload asks with all defaults."""
    payload = asked.payload or b"{}"
    try:
        return codec.decode(payload)
    except MalformedError as error:
        found = _first_problem(codec, payload)
        raise _refusal(found.field, found.value, found.reason) from error
    except ContractError as error:
        raise _refusal("question", _beginning(payload), str(error)) from error


def tenant_asked(asked: Asked, stated: str | None) -> str | None:
    """The tenant that the subject allows to be asked about; None for all. The subject counts: grants are made on it."""
    token = asked.subject.rsplit(".", 1)[1]
    if token == NO_NAME:
        return stated
    tenant = decode_token(token)
    if stated is not None and stated != tenant:
        refuse("tenant", stated, f"the subject asks about tenant {tenant!r}, and the subject counts")
    return tenant


def refuse(field: str, value: object, reason: str) -> NoReturn:
    """Tells the asker which field of the question is wrong, and why."""
    raise _refusal(field, value, reason)


def _refusal(field: str, value: object, reason: str) -> Rejected:
    problem = Problem(field=field, value="" if value is msgspec.UNSET else shown(value), reason=reason)
    return Rejected(400, f"{field}: {reason}", to_json(problem))


def _first_problem[T: Message](codec: Codec[T], payload: bytes) -> FieldError:
    """The first thing that is wrong with a question that cannot be read."""
    if len(payload) > _LONGEST_EXPLAINED:
        reason = f"cannot be read; what is wrong is told of up to {_LONGEST_EXPLAINED} bytes"
        return FieldError("question", _beginning(payload), reason)
    try:
        found, problems = parse_json(payload, most=1)
    except JsonError as error:
        return FieldError("question", _beginning(payload), str(error))
    if not isinstance(found, dict):
        return no_mapping("question", found)
    reader = StructReader()
    if isinstance(codec.kind, type) and issubclass(codec.kind, Message):
        reader.struct(codec.kind, found, "")
    unread = FieldError("question", _beginning(payload), "cannot be read")
    return next(iter([*reader.problems, *problems]), unread)


def _beginning(payload: bytes) -> str:
    return payload[:200].decode(errors="replace")
