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
)
from fairlead_policy.hami.cards import Card


class CardStrategy(StrEnum):
    """How to choose among places that all fit."""

    BINPACK = "binpack"
    """As few as can be, and those in use first."""
    SPREAD = "spread"
    """As many as can be, evenly."""


class Policies(msgspec.Struct, frozen=True, kw_only=True):
    """The meaning of a pod's two policy annotations."""

    node: CardStrategy = CardStrategy.BINPACK
    card: CardStrategy = CardStrategy.SPREAD
    idle_cards_only: bool = False
    """`mutex`: only a card that nobody uses is taken; others may join it later."""
    ignored: tuple[str, ...] = ()
    """Words that no policy has; HAMi passes over them without a word."""


_STANDARD = Policies()


class CardAnnotations(msgspec.Struct, frozen=True, kw_only=True):
    """Which cards a pod accepts, and how it chooses among them."""

    use_models: tuple[str, ...] = ()
    avoid_models: tuple[str, ...] = ()
    use_uuids: tuple[str, ...] = ()
    avoid_uuids: tuple[str, ...] = ()
    mode: str | None = None
    one_numa_node: bool = False
    idle_cards_only: bool = False
    strategy: CardStrategy = CardStrategy.SPREAD

    @property
    def name_cards(self) -> bool:
        """Whether cards that differ by name alone are not alike to the pod."""
        return bool(self.use_uuids or self.avoid_uuids)

    def accept_model(self, model: str) -> bool:
        """Case does not count and a part is enough: `A100` is any A100 (`CheckType` in `pkg/device/devices.go`)."""
        if not self.use_models and not self.avoid_models:
            return True
        upper = model.upper()
        if self.use_models and not any(part and part.upper() in upper for part in self.use_models):
            return False
        return not any(part and part.upper() in upper for part in self.avoid_models)

    def accept_uuid(self, uuid: str) -> bool:
        """Whether the card's UUID is accepted, as `CheckUUID` in `pkg/device/devices.go`."""
        return (not self.use_uuids or uuid in self.use_uuids) and uuid not in self.avoid_uuids

    def accept_mode(self, card: Card) -> bool:
        """Whether the card's mode is accepted, as `checkType`: the mode is part of the annotation's text."""
        return self.mode is None or card.mode in self.mode


def policies_of(annotations: Mapping[str, str], default: Policies = _STANDARD) -> Policies:
    """The policies for nodes and for cards that HAMi goes by.

    Args:
        annotations: of the pod.
        default: of the scheduler, where an annotation is absent (its flags `--node-scheduler-policy` and
            `--gpu-scheduler-policy`, of which `binpack` and `spread` are HAMi's own defaults).
    """
    node, card, idle, ignored = default.node, default.card, default.idle_cards_only, []
    if (text := annotations.get(NODE_POLICY)) is not None:
        # HAMi compares the whole text with "spread"; all else packs (`pkg/scheduler/policy/node_policy.go`).
        node = CardStrategy.SPREAD if text == CardStrategy.SPREAD else CardStrategy.BINPACK
        ignored += [text] if text not in set(CardStrategy) else []
    if (text := annotations.get(CARD_POLICY)) is not None:
        words = [word.strip() for word in text.split(",")]
        idle = "mutex" in words
        keys = [CardStrategy(word) for word in words if word in set(CardStrategy)]
        card = keys[0] if keys else CardStrategy.SPREAD
        known = {*CardStrategy, "mutex", "topology-aware", "numa"}
        ignored += [word for word in words if word not in known]
    return Policies(node=node, card=card, idle_cards_only=idle, ignored=tuple(ignored))


def card_annotations_of(annotations: Mapping[str, str], default: Policies = _STANDARD) -> CardAnnotations:
    """Which cards the pod accepts, by its annotations. An empty list excludes none."""
    policies = policies_of(annotations, default)
    return CardAnnotations(
        use_models=_listed(annotations.get(USE_MODEL, "")),
        avoid_models=_listed(annotations.get(AVOID_MODEL, "")),
        use_uuids=_listed(annotations.get(USE_UUID, "")),
        avoid_uuids=_listed(annotations.get(AVOID_UUID, "")),
        mode=annotations.get(MODE),
        one_numa_node=annotations.get(NUMA_BIND) in TRUE,
        idle_cards_only=policies.idle_cards_only,
        strategy=policies.card,
    )


def _listed(text: str) -> tuple[str, ...]:
    # A list of nothing but commas is a list all the same: it accepts no card.
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
