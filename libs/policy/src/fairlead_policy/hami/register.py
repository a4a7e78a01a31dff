"""The cards that a node registers, as the fit looks at them; `fairlead_contracts.frontend.card_annotations` decodes them."""

from collections.abc import Mapping

from fairlead_contracts.frontend import card_annotations
from fairlead_contracts.frontend.cards import REGISTER, CardState
from fairlead_policy.hami.cards import Card


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
