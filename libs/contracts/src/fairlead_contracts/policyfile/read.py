"""The policy document: one YAML or JSON file that says who may have what.

Stored in the `policy` bucket under `document`; the key's revision is the policy's revision. Reading checks everything
at once: an operator sees every problem of a file, not one a run. First the shape, key by key, down to each field of each entry; then the sense of what could be read.
"""

from collections.abc import Collection

import msgspec

from fairlead_contracts.base.errors import DocumentError, FieldError, why_unread
from fairlead_contracts.base.reading import StructReader, no_mapping, with_unread
from fairlead_contracts.policyfile.document import POLICY_VERSION, PRESETS, PolicyDocument, written_out
from fairlead_contracts.policyfile.older_controllers import in_our_words
from fairlead_contracts.policyfile.validate import check_document

_encoder = msgspec.json.Encoder()
_FORMER_KEYS = {
    "aging.share_per_hour": "is not a key any more: waiting counts in entitlements a day. For the same order of a flat "
    "pool, write this number times 24, times the sum of the weights at the top, as `entitlement_per_day`",
    "aging.cap_hours": "is not a key any more: write a 24th of it as `cap_days`",
}
"""Keys of an earlier form: another unit must not slip in unseen."""


def encode_document(document: PolicyDocument) -> bytes:
    """The document as it is stored: JSON."""
    return _encoder.encode(document)


def decode_document(payload: bytes) -> PolicyDocument:
    """The document as stored or as sent.

    Raises:
        DocumentError: with every problem found.
    """
    try:
        found = msgspec.json.decode(payload) if payload.strip() else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        reason = f"is not valid JSON: {why_unread(error)}"
        raise DocumentError([FieldError("document", msgspec.UNSET, reason)]) from error
    return read_document(found)


def read_document(
    found: object,
    *,
    tenants: Collection[str] = (),
    pools: Collection[str] = (),
    unread: Collection[FieldError] = (),
) -> PolicyDocument:
    """The document in plain values, as a YAML or JSON parser gives them.

    Args:
        found: the values; a configuration of one of the two older controllers is read as what its formula means.
        tenants: names that it may grant classes to beside its own tenants.
        pools: names that its tenants may have as pools beside its own.
        unread: problems of its parser, told with the rest.

    Raises:
        DocumentError: with every problem found; of another version, with that alone.
    """
    if not isinstance(found, dict):
        raise DocumentError([*unread, no_mapping("document", found)])
    version = found.get("version", POLICY_VERSION)
    if type(version) is not int or version != POLICY_VERSION:
        reason = f"this release reads policies of version {POLICY_VERSION}"
        raise DocumentError([FieldError("version", version, reason)])
    translation = in_our_words(found)
    reader = StructReader()
    document = reader.struct(PolicyDocument, written_out(translation.keys), "")
    if document is not None:
        stated = names_of(found.get("tenants"))
        reader.problems += check_document(document, reader.kept, tenants, stated, pools)
    problems = with_unread(unread, translation.by_file_keys(reader.problems))
    if problems or document is None:
        raise DocumentError([_with_hint(problem) for problem in problems])
    return document


def _with_hint(problem: FieldError) -> FieldError:
    """The problem, with presets named beside the modes of `class_mode`, and what took the place of a former key."""
    reason = _FORMER_KEYS.get(problem.field, problem.reason)
    if problem.field == "class_mode":
        reason = f"{problem.reason}, or a preset: {', '.join(PRESETS)}"
    return FieldError(problem.field, problem.value, reason)


def names_of(entries: object) -> set[str]:
    """Names of entries, also of those that cannot be read: who refers to one made no mistake."""
    if not isinstance(entries, list):
        return set()
    names = [entry.get("name") for entry in entries if isinstance(entry, dict)]
    return {name for name in names if isinstance(name, str)}
