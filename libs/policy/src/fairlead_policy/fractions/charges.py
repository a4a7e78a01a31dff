"""What an ask for vGPUs weighs in a pool: thousandths of a card, whole numbers."""

import msgspec

from fairlead_policy.fractions.asks import VgpuAsk
from fairlead_policy.fractions.cards import Card

_CARD = 1000


class CardShare(msgspec.Struct, frozen=True, kw_only=True):
    """What one ask takes of cards in all, in thousandths of a card."""

    cores: int
    memory: int

    @property
    def cards(self) -> int:
        """The larger of both: nobody else can use what is left of a card whose memory or cores are gone."""
        return max(self.cores, self.memory)


def card_share(ask: VgpuAsk, card: Card) -> CardShare:
    """What the ask weighs on cards of this kind, each vGPU rounded up to a thousandth.

    It is a share of what the card registers: with `deviceMemoryScaling` 2, half of that memory is a whole card's
    silicon. An ask for more than a card has weighs more than a card, so that nobody gains by asking too much.

    Args:
        ask: of one container.
        card: that stands for the flavor's cards; its use does not count.
    """
    return CardShare(
        cores=ask.count * _share(ask.cores, card.cores),
        memory=ask.count * _share(ask.memory_on(card), card.memory),
    )


def _share(part: int, whole: int) -> int:
    # A card that registers none of something gives none of it: any of it is worth the card.
    if whole <= 0:
        return _CARD if part else 0
    return -(-part * _CARD // whole)
