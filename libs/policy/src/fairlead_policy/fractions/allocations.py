"""What running pods hold of cards, as HAMi notes it on them.

One part a container, init containers first, each ended by a semicolon; in it one entry a card, `uuid,type,MiB,cores`,
each ended by a colon (`DecodePodDevices` in `pkg/device/devices.go`@v2.10.0).
"""

import re
from collections.abc import Iterable

import msgspec

from fairlead_contracts.cards import ALLOCATED
from fairlead_policy.fractions.cards import Card
from fairlead_policy.fractions.errors import AllocatedError

_INTEGER = re.compile(r"[0-9]{1,10}", re.ASCII)
_INT32 = 2**31 - 1
_FIELDS = 4


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """One vGPU that a container holds: MiB and percent of the cores of that card."""

    uuid: str
    memory: int
    cores: int


def decode_allocated(pod: str, value: str) -> tuple[tuple[Allocation, ...], ...]:
    """What each container of the pod holds, in the annotation's order; containers without a card keep their place.

    Raises:
        AllocatedError: an entry has fewer than four fields, or its amounts are no whole numbers.
    """
    parts = value.split(";")
    if parts and not parts[-1]:
        parts.pop()
    # HAMi passes over entries without a comma; they name no card.
    return tuple(tuple(_entry(pod, entry) for entry in part.split(":") if "," in entry) for part in parts)


def _entry(pod: str, entry: str) -> Allocation:
    fields = entry.split(",")
    if len(fields) < _FIELDS or not fields[0]:
        raise AllocatedError(pod, ALLOCATED, entry, "an entry is uuid,type,memory,cores")
    memory, cores = (_amount(pod, field) for field in fields[2:_FIELDS])
    return Allocation(uuid=fields[0], memory=memory, cores=cores)


def _amount(pod: str, field: str) -> int:
    if not _INTEGER.fullmatch(field) or int(field) > _INT32:
        raise AllocatedError(pod, ALLOCATED, field, "an amount is a whole number from 0 up")
    return int(field)


def with_use(cards: Iterable[Card], held: Iterable[Allocation]) -> tuple[Card, ...]:
    """The cards with that much more in use. What is held of cards that are not among them counts nowhere."""
    found = {card.uuid: card for card in cards}
    for one in held:
        if (card := found.get(one.uuid)) is not None:
            found[one.uuid] = card.taken(one.memory, one.cores)
    return tuple(found.values())
