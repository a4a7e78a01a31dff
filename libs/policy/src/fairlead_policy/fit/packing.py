"""Unlike asks on the cards of one node: a search that tries every way that differs, within a stated number of steps."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.fit.shapes import PodShape
from fairlead_policy.hami.admission import refusal_of
from fairlead_policy.hami.annotations import CardAnnotations
from fairlead_policy.hami.requests import VgpuRequest
from fairlead_policy.hami.sharing import Chosen

_DEEPEST = 200
"""vGPU asks on one node that are searched; each is one level of recursion."""

_IDLE_FIRST, _SHARING, _BOUNDED = range(3)


class Budget:
    """Steps that a search may still take. Once spent, nothing that is not found is proven."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self.taken = 0
        self.spent = False

    def spend(self) -> bool:
        """Take one step; False when there is none left."""
        self._left -= 1
        self.taken += 1
        self.spent = self.spent or self._left < 0
        return not self.spent

    def part(self, steps: int) -> "Budget":
        """A budget of so many of its steps, or of what is left."""
        return Budget(max(min(steps, self._left), 0))

    def absorb(self, part: "Budget") -> None:
        """Count the steps that a part of it has taken."""
        self._left -= part.taken
        self.spent = self.spent or part.spent

    def give_up(self) -> None:
        """Say that a part is not searched at all; what else is searched keeps its steps."""
        self.spent = True


type Kind = tuple[object, ...]
"""Facts by which cards are alike."""


def kind_of(card: CardState, *, named: bool) -> Kind:
    """The kind of a card: equal for cards that differ by name alone; never equal where names count."""
    used = (card.used_count, card.used_memory, card.used_cores)
    state = (
        card.count,
        card.memory,
        card.cores,
        card.model,
        card.numa,
        card.mode,
        card.health,
        card.cordoned,
    )
    return (*used, *state, card.uuid) if named else (*used, *state)


class CardRequest(msgspec.Struct, frozen=True):
    """One container's request for cards, with its pod's annotations."""

    ask: VgpuRequest
    card_annotations: CardAnnotations


def wants_of(shape: PodShape) -> list[CardRequest]:
    """The asks of one pod in the order in which HAMi serves them."""
    return [CardRequest(ask, shape.card_annotations) for ask in shape.vgpus]


def packing_rank(want: CardRequest) -> int:
    """The order in which shapes are packed, the hardest to place first: this order never loses a fit.

    What needs an idle card goes before what shares it. What asks for no cores goes before those that may fill them,
    since HAMi refuses it on a card whose cores are full and they don't mind it.
    """
    if want.card_annotations.idle_cards_only:
        return _IDLE_FIRST
    return _BOUNDED if want.ask.cores else _SHARING


def take(cards: list[CardState], want: CardRequest, chosen: Chosen) -> None:
    """Mark those cards used by the ask."""
    for position in chosen:
        card = cards[position]
        cards[position] = card.taken(want.ask.memory_on(card), want.ask.cores)


def pack(cards: Sequence[CardState], wanted: Sequence[CardRequest], budget: Budget) -> list[Chosen] | None:
    """Cards for each want, served in this order; None where there are none, or none was found in time."""
    if len(wanted) > _DEEPEST:
        budget.give_up()
        return None
    packing = _Packing(cards, wanted, budget)
    return packing.chosen if packing.serve(0) else None


class _Packing:
    """Depth first, with the states remembered from which the rest could not be served.

    Cards that differ by name alone are one kind: how many of a kind are taken matters, not which.
    """

    def __init__(self, cards: Sequence[CardState], wanted: Sequence[CardRequest], budget: Budget) -> None:
        self.chosen: list[Chosen] = []
        self._cards = list(cards)
        self._wanted = wanted
        self._budget = budget
        self._named = any(want.card_annotations.name_cards for want in wanted)
        self._failed: set[tuple[int, frozenset[tuple[Kind, int]]]] = set()

    def serve(self, number: int) -> bool:
        if number == len(self._wanted):
            return True
        state = (number, frozenset(Counter(map(self._kind, self._cards)).items()))
        if state in self._failed or not self._budget.spend():
            return False
        want = self._wanted[number]
        for chosen in self._choices(want):
            before = [self._cards[position] for position in chosen]
            take(self._cards, want, chosen)
            self.chosen.append(chosen)
            if self.serve(number + 1):
                return True
            self.chosen.pop()
            for position, card in zip(chosen, before, strict=True):
                self._cards[position] = card
        self._failed.add(state)
        return False

    def _kind(self, card: CardState) -> Kind:
        return kind_of(card, named=self._named)

    def _choices(self, want: CardRequest) -> Iterator[Chosen]:
        """Every choice of cards that differs, the fullest cards first."""
        kinds: dict[tuple[int, Kind], list[int]] = defaultdict(list)
        for position, card in enumerate(self._cards):
            if refusal_of(card, want.ask, want.card_annotations) is None:
                kinds[card.numa if want.card_annotations.one_numa_node else 0, self._kind(card)].append(
                    position
                )
        for numa in sorted({numa for numa, _ in kinds}):
            groups = [positions for (on, _), positions in kinds.items() if on == numa]
            group = [(self._cards[positions[0]].free_memory, positions) for positions in groups]
            yield from _subsets([positions for _, positions in sorted(group)], want.ask.count)


def _subsets(kinds: list[list[int]], count: int) -> Iterator[Chosen]:
    if not count:
        yield ()
        return
    if sum(map(len, kinds)) < count:
        return
    first, rest = kinds[0], kinds[1:]
    for number in range(min(len(first), count), -1, -1):
        for others in _subsets(rest, count - number):
            yield tuple(chain(first[:number], others))
