"""Physical cards as their nodes register them, and what is used of them; `fairlead_contracts.frontend.card_annotations` decodes."""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.frontend import card_annotations
from fairlead_contracts.frontend.cards import REGISTER, Allocation, CardState


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """A card as its node registers it, after scaling, with what running pods hold.

    Memory is in MiB, cores in percent of the card. With `deviceMemoryScaling` or `deviceCoreScaling` above 1 both are
    more than the silicon has, and 100 % of cores is no longer the whole card.
    """

    uuid: str
    slots: int
    """How many vGPUs may share it: `count`, from `deviceSplitCount`."""
    memory: int
    cores: int = 100
    model: str = ""
    index: int = 0
    numa: int = 0
    mode: str = "hami-core"
    healthy: bool = True
    cordoned: bool = False
    used_slots: int = 0
    used_memory: int = 0
    used_cores: int = 0

    def taken(self, memory: int, cores: int, slots: int = 1) -> "Card":
        """The card with that much more in use."""
        return msgspec.structs.replace(
            self,
            used_slots=self.used_slots + slots,
            used_memory=self.used_memory + memory,
            used_cores=self.used_cores + cores,
        )

    def emptied(self) -> "Card":
        """The card with nothing in use."""
        return msgspec.structs.replace(self, used_slots=0, used_memory=0, used_cores=0)

    @property
    def free_memory(self) -> int:
        """MiB that nobody holds; below zero where a scaling was lowered under running pods."""
        return self.memory - self.used_memory

    @property
    def free_cores(self) -> int:
        """Percent that nobody holds."""
        return self.cores - self.used_cores


def with_use(cards: Iterable[Card], held: Iterable[Allocation]) -> tuple[Card, ...]:
    """The cards with that much more in use. What is held of cards that are not among them counts nowhere."""
    found = {card.uuid: card for card in cards}
    for one in held:
        if (card := found.get(one.uuid)) is not None:
            found[one.uuid] = card.taken(one.memory, one.cores)
    return tuple(found.values())


def card_of(stated: CardState) -> Card:
    """The card as it is stated, with what pods hold of it."""
    return Card(
        uuid=stated.uuid,
        slots=stated.count,
        memory=stated.memory,
        cores=stated.cores,
        model=stated.model,
        index=stated.index,
        numa=stated.numa,
        mode=stated.mode,
        healthy=stated.health,
        cordoned=stated.cordoned,
        used_slots=stated.used_count,
        used_memory=stated.used_memory,
        used_cores=stated.used_cores,
    )


def cards_of(node: str, annotations: Mapping[str, str]) -> tuple[Card, ...]:
    """The cards of a node with nothing in use; see `card_annotations.cards_of`.

    Raises:
        RegisterError: the annotation is there and cannot be read.
    """
    return tuple(map(card_of, card_annotations.cards_of(node, annotations)))


def decode_register(node: str, value: str | bytes, field: str = REGISTER) -> tuple[Card, ...]:
    """The cards in either encoding; see `card_annotations.decode_register`.

    Raises:
        RegisterError: in no way that HAMi writes, or it states a card without a name or twice, or less than nothing.
    """
    return tuple(map(card_of, card_annotations.decode_register(node, value, field)))
