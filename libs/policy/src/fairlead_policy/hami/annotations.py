"""HAMi's annotations of a pod: which cards it accepts. They must stand on the pod template to reach HAMi."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from fairlead_contracts.frontend.cards import (
    AVOID_MODEL,
    AVOID_UUID,
    CARD_POLICY,
    MODE,
    NODE_POLICY,
    NUMA_BIND,
    TRUE,
    USE_MODEL,
    USE_UUID,
    CardState,
)


class CardStrategy(StrEnum):
    """Rule by which places are chosen among those that all fit."""

    BINPACK = "binpack"
    """Takes as few nodes or cards as can be, and those in use first."""
    SPREAD = "spread"
    """Takes as many nodes or cards as can be, evenly."""


class CardAnnotations(msgspec.Struct, frozen=True, kw_only=True):
    """A pod's annotations that choose cards: which it accepts, and how they are chosen."""

    use_models: tuple[str, ...] = ()
    avoid_models: tuple[str, ...] = ()
    use_uuids: tuple[str, ...] = ()
    avoid_uuids: tuple[str, ...] = ()
    mode: str | None = None
    one_numa_node: bool = False
    idle_cards_only: bool = False
    """Whether only a card that nobody uses is taken (`mutex`); others may join it later."""
    strategy: CardStrategy = CardStrategy.SPREAD

    @property
    def name_cards(self) -> bool:
        """Whether cards that differ by name alone are not alike to the pod."""
        return bool(self.use_uuids or self.avoid_uuids)

    @property
    def want_some_cards(self) -> bool:
        """Whether only cards of some models, of some UUIDs or in some mode are accepted."""
        return bool(self.use_models or self.use_uuids) or self.mode is not None

    def accept_model(self, model: str) -> bool:
        """Whether the model is accepted, by a part of it in any case (`CheckType` in `pkg/device/devices.go`)."""
        if not self.use_models and not self.avoid_models:
            return True
        upper = model.upper()
        if self.use_models and not any(part and part.upper() in upper for part in self.use_models):
            return False
        return not any(part and part.upper() in upper for part in self.avoid_models)

    def accept_uuid(self, uuid: str) -> bool:
        """Whether the card's UUID is accepted, as `CheckUUID` in `pkg/device/devices.go`."""
        return (not self.use_uuids or uuid in self.use_uuids) and uuid not in self.avoid_uuids

    def accept_mode(self, card: CardState) -> bool:
        """Whether the card's mode is accepted, as `checkType`: the mode is part of the annotation's text."""
        return self.mode is None or card.mode in self.mode


def node_strategy_of(annotations: Mapping[str, str], default: CardStrategy) -> CardStrategy:
    """The rule by which HAMi chooses among nodes for the pod; by default the scheduler's (its flag `--node-scheduler-policy`)."""
    text = annotations.get(NODE_POLICY)
    if text is None:
        return default
    # HAMi compares the whole text with "spread"; all else packs (`pkg/scheduler/policy/node_policy.go`).
    return CardStrategy.SPREAD if text == CardStrategy.SPREAD else CardStrategy.BINPACK


def card_annotations_of(annotations: Mapping[str, str]) -> CardAnnotations:
    """The pod's annotations that choose cards. An empty list excludes none.

    Without a policy for cards HAMi spreads (its flag `--gpu-scheduler-policy`); words that no policy has it passes over.
    """
    words = [word.strip() for word in annotations.get(CARD_POLICY, "").split(",")]
    strategies = [CardStrategy(word) for word in words if word in set(CardStrategy)]
    return CardAnnotations(
        use_models=_listed(annotations.get(USE_MODEL, "")),
        avoid_models=_listed(annotations.get(AVOID_MODEL, "")),
        use_uuids=_listed(annotations.get(USE_UUID, "")),
        avoid_uuids=_listed(annotations.get(AVOID_UUID, "")),
        mode=annotations.get(MODE),
        one_numa_node=annotations.get(NUMA_BIND) in TRUE,
        idle_cards_only="mutex" in words,
        strategy=strategies[0] if strategies else CardStrategy.SPREAD,
    )


def _listed(text: str) -> tuple[str, ...]:
    # A list of nothing but commas is a list all the same: it accepts no card.
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
