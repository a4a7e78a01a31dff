"""Equal pods on the cards of one node: how many fit, exactly, without search.

A pod wants n vGPUs on n different cards. If card c has room for k_c of them, then m such pods fit if and only if
`sum(min(k_c, m)) >= n * m`: no card serves a pod twice, and conversely dealing the units of one card after the other
round the m pods gives each pod n different cards (McNaughton's wrap-around, Management Science 6(1), 1959).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.hami.admission import room_of
from fairlead_policy.hami.annotations import CardAnnotations, CardStrategy
from fairlead_policy.hami.requests import VgpuRequest

type Chosen = tuple[int, ...]
"""Positions of the cards that one pod takes for one ask."""


def pods_held(
    cards: Sequence[CardState], ask: VgpuRequest, card_annotations: CardAnnotations, most: int
) -> int:
    """The number of pods of this one ask that fit on these cards, at most `most`."""
    held = 0
    for group in _groups(cards, card_annotations):
        held += _held(
            [room_of(cards[position], ask, card_annotations) for position in group], ask.count, most - held
        )
    return held


def deal(
    cards: Sequence[CardState], ask: VgpuRequest, card_annotations: CardAnnotations, pods: int
) -> list[Chosen]:
    """The cards of each of so many pods; fewer where fewer fit. Chosen as the pod's policy for cards says."""
    chosen: list[Chosen] = []
    binpack = card_annotations.strategy is CardStrategy.BINPACK
    sign = -1 if binpack else 1  # the fullest cards first, or the emptiest
    for group in _groups(cards, card_annotations):
        group.sort(key=lambda at: (sign * cards[at].used_count, sign * cards[at].used_memory, at))
        rooms = {position: room_of(cards[position], ask, card_annotations) for position in group}
        here = _held(list(rooms.values()), ask.count, pods - len(chosen))
        level = here if binpack else _level(list(rooms.values()), ask.count * here)
        held = (position for position, room in rooms.items() for _ in range(min(room, level)))
        hands: list[list[int]] = [[] for _ in range(here)]
        for number, position in enumerate(islice(held, ask.count * here)):
            hands[number % here].append(position)
        chosen += map(tuple, hands)
    return chosen


def _groups(cards: Sequence[CardState], card_annotations: CardAnnotations) -> Iterator[list[int]]:
    """The cards that one ask may take together: all, or those of one NUMA node."""
    if not card_annotations.one_numa_node:
        yield list(range(len(cards)))
        return
    groups = defaultdict(list)
    for position, card in enumerate(cards):
        groups[card.numa].append(position)
    yield from (groups[numa] for numa in sorted(groups))


def _held(rooms: list[int], wanted: int, most: int) -> int:
    """The largest m of the rule above. Each round is an upper bound, so the first that holds is the largest."""
    pods = most
    while pods > 0 and (units := sum(min(room, pods) for room in rooms)) < wanted * pods:
        pods = units // wanted
    return pods


def _level(rooms: list[int], units: int) -> int:
    """The lowest number of units a card that gives so many in all."""
    return next(level for level in range(units + 1) if sum(min(room, level) for room in rooms) >= units)
