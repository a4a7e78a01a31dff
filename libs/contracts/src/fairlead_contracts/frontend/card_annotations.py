"""HAMi's annotations of cards: on a node the cards that it has, on a pod those that it holds.

A node's register comes in two encodings, told apart by their first character. JSON, an array of objects in which HAMi
leaves out every zero: NVIDIA since v2.8.0 (`UnMarshalNodeDevices` in `pkg/device/devices.go`@v2.10.0). Before, and still
of some other vendors, cards ended by colons with fields parted by commas (`DecodeNodeDevices` there): uuid, count, MiB,
cores, model, NUMA node, health and, since v2.6, index and mode.

On a pod: one part a container, init containers first, each ended by a semicolon; in it one entry a card,
`uuid,type,MiB,cores`, each ended by a colon (`DecodePodDevices` there).
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated

import msgspec

from fairlead_contracts.base.errors import FieldError, shown
from fairlead_contracts.frontend.cards import (
    ALLOCATED,
    CORDON,
    FALSE,
    HOLDER,
    MOST_COUNTED,
    REGISTER,
    TRUE,
    Allocation,
    CardCount,
    CardState,
)

LONGEST = 256 * 1024
"""Characters: Kubernetes bounds all annotations of an object together by so many bytes."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_AMOUNT = re.compile(r"[0-9]{1,10}", re.ASCII)
_HELD_FIELDS = 4
_SHORT, _LONG = 7, 9
_COUNT, _MEMORY, _CORES, _MODEL, _NUMA, _HEALTH, _INDEX, _MODE = range(1, _LONG)

type _Signed = Annotated[int, msgspec.Meta(ge=-MOST_COUNTED - 1, le=MOST_COUNTED)]


class RegisterError(FieldError):
    """The cards that a node states cannot be read: which node, what was found and why not."""

    def __init__(self, node: str, value: object, reason: str) -> None:
        super().__init__(REGISTER, value, reason)
        self.args = (f"node {shown(node)}: {self.args[0]}",)
        self.node = node


class AllocatedError(FieldError):
    """The cards that a pod holds cannot be read: which pod, what was found and why not."""

    def __init__(self, pod: str, value: object, reason: str) -> None:
        super().__init__(ALLOCATED, value, reason)
        self.args = (f"pod {shown(pod)}: {self.args[0]}",)
        self.pod = pod


class _Registered(msgspec.Struct, frozen=True):
    """A card in JSON: what is left out is zero, so a card that says nothing of its health is not healthy."""

    id: str = ""
    index: CardCount = 0
    count: CardCount = 0
    devmem: CardCount = 0
    devcore: CardCount = 0
    type: str = ""
    numa: _Signed = 0
    mode: str = ""
    health: bool = False


_DECODER = msgspec.json.Decoder(list[_Registered])


def cards_of(node: str, annotations: Mapping[str, str]) -> tuple[CardState, ...]:
    """The cards of a node with nothing in use, those under HAMi's cordon marked; none where none are registered.

    Raises:
        RegisterError: the annotation is there and cannot be read.
    """
    value = annotations.get(REGISTER)
    if value is None:
        return ()
    cordoned = {uuid.strip() for uuid in annotations.get(CORDON, "").split(",")}
    return tuple(
        msgspec.structs.replace(card, cordoned=card.uuid in cordoned) for card in decode_register(node, value)
    )


def decode_register(node: str, value: str | bytes) -> tuple[CardState, ...]:
    """The cards in either encoding; an error names the node.

    Raises:
        RegisterError: in no way that HAMi writes, or it states a card without a name or twice, or less than nothing.
    """
    if len(value) > LONGEST:
        raise RegisterError(node, value[:80], "longer than Kubernetes lets annotations be")
    try:
        text = value if isinstance(value, str) else value.decode()
        text.encode()
    except UnicodeError:
        raise RegisterError(node, repr(value), "not UTF-8") from None
    as_json = text.lstrip().startswith("[")
    cards = _from_json(node, text) if as_json else tuple(_from_words(node, text))
    seen = set()
    for card in cards:
        if not card.uuid or card.uuid in seen:
            raise RegisterError(node, card.uuid, "each card needs a name of its own")
        seen.add(card.uuid)
    return cards


def _from_json(node: str, text: str) -> tuple[CardState, ...]:
    try:
        found = _DECODER.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise RegisterError(node, text, f"no list of cards: {error}") from None
    return tuple(
        CardState(
            uuid=one.id,
            count=one.count,
            memory=one.devmem,
            cores=one.devcore,
            model=one.type,
            index=one.index,
            numa=one.numa,
            mode=one.mode,
            health=one.health,
        )
        for one in found
    )


def _from_words(node: str, text: str) -> Iterator[CardState]:
    if ":" not in text:
        raise RegisterError(node, text, "neither a JSON list nor cards that end in a colon")
    for segment in text.split(":"):
        if not segment:
            continue
        words = segment.split(",")
        if len(words) not in (_SHORT, _LONG):
            raise RegisterError(node, segment, f"a card has 7 or 9 fields, not {len(words)}")
        if words[_HEALTH] not in TRUE | FALSE:
            raise RegisterError(node, words[_HEALTH], "health is true or false")
        yield CardState(
            uuid=words[0],
            count=_integer(node, "count", words[_COUNT]),
            memory=_integer(node, "memory", words[_MEMORY]),
            cores=_integer(node, "cores", words[_CORES]),
            model=words[_MODEL],
            numa=_integer(node, "NUMA node", words[_NUMA], least=-MOST_COUNTED - 1),
            health=words[_HEALTH] in TRUE,
            index=_integer(node, "index", words[_INDEX]) if len(words) == _LONG else 0,
            mode=words[_MODE] if len(words) == _LONG else "hami-core",
        )


def _integer(node: str, name: str, word: str, least: int = 0) -> int:
    number = int(word) if _INTEGER.fullmatch(word) else None
    if number is None or not least <= number <= MOST_COUNTED:
        raise RegisterError(node, word, f"{name} is a whole number from {least} to {MOST_COUNTED}")
    return number


def decode_allocated(pod: str, value: str) -> tuple[tuple[Allocation, ...], ...]:
    """The cards of each container of the pod, in the annotation's order; containers without a card keep their place.

    Raises:
        AllocatedError: an entry has fewer than four fields, or its amounts are no whole numbers.
    """
    parts = value.split(";")
    if parts and not parts[-1]:
        parts.pop()
    # HAMi passes over entries without a comma; they name no card.
    return tuple(tuple(_entry(pod, entry) for entry in part.split(":") if "," in entry) for part in parts)


def held_cards(annotations: Mapping[str, str]) -> tuple[Allocation, ...]:
    """The cards that a pod holds. As in HAMi, who holds some is whose note can be read."""
    noted = annotations.get(ALLOCATED)
    if noted is None or not annotations.get(HOLDER):
        return ()
    try:
        return tuple(chain.from_iterable(decode_allocated("", noted)))
    except AllocatedError:
        return ()


def _entry(pod: str, entry: str) -> Allocation:
    fields = entry.split(",")
    if len(fields) < _HELD_FIELDS or not fields[0]:
        raise AllocatedError(pod, entry, "an entry is uuid,type,memory,cores")
    memory, cores = (_amount(pod, field) for field in fields[2:_HELD_FIELDS])
    return Allocation(uuid=fields[0], memory=memory, cores=cores)


def _amount(pod: str, field: str) -> int:
    if not _AMOUNT.fullmatch(field) or int(field) > MOST_COUNTED:
        raise AllocatedError(pod, field, "an amount is a whole number from 0 up")
    return int(field)
