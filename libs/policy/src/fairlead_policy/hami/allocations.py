"""Cards with what running pods hold of them."""

from collections.abc import Iterable

from fairlead_contracts.frontend.cards import Allocation
from fairlead_policy.hami.cards import Card


def with_use(cards: Iterable[Card], held: Iterable[Allocation]) -> tuple[Card, ...]:
    """The cards with that much more in use. What is held of cards that are not among them counts nowhere."""
    found = {card.uuid: card for card in cards}
    for one in held:
        if (card := found.get(one.uuid)) is not None:
            found[one.uuid] = card.taken(one.memory, one.cores)
    return tuple(found.values())
