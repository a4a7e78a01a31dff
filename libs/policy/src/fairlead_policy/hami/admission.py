"""HAMi's test of one card for one vGPU: `Fit` in `pkg/device/nvidia/device.go`@v2.10.0, its tests in its order."""

from enum import StrEnum

from fairlead_contracts.frontend.cards import CardState
from fairlead_policy.hami.annotations import CardAnnotations
from fairlead_policy.hami.requests import WHOLE, VgpuRequest

MIG = "mig"


class Refusal(StrEnum):
    """Reason for which a card does not take a vGPU; HAMi's own word for each is in its event on the pod."""

    UNHEALTHY = "unhealthy"  # CardNotHealth
    CORDONED = "cordoned"  # CardCordoned
    MODEL = "model"  # CardTypeMismatch
    UUID = "uuid"  # CardUuidMismatch
    SLOTS = "slots"  # CardTimeSlicingExhausted
    IN_USE = "in use"  # ExclusiveDeviceAllocateConflict
    MEMORY = "memory"  # CardInsufficientMemory
    CORES = "cores"  # CardInsufficientCore
    CORES_FULL = "cores full"  # CardComputeUnitsExhausted
    MIG = "mig"  # not modelled


def barred(card: CardState, card_annotations: CardAnnotations) -> Refusal | None:
    """The reason for which the card is not for this pod, whatever is used of it; None where it may be."""
    if not card.health:
        return Refusal.UNHEALTHY
    if card.cordoned:
        return Refusal.CORDONED
    if not card_annotations.accept_model(card.model) or not card_annotations.accept_mode(card):
        return Refusal.MODEL
    if not card_annotations.accept_uuid(card.uuid):
        return Refusal.UUID
    return Refusal.MIG if card.mode == MIG else None


def refusal_of(card: CardState, ask: VgpuRequest, card_annotations: CardAnnotations) -> Refusal | None:
    """The reason for which the card does not take one vGPU of this ask; None where it takes it."""
    return barred(card, card_annotations) or _full(card, ask, card_annotations)


def _full(card: CardState, ask: VgpuRequest, card_annotations: CardAnnotations) -> Refusal | None:
    if card.count <= card.used_count:
        return Refusal.SLOTS
    if card.used_count > 0 and wants_idle(card, ask, card_annotations):
        return Refusal.IN_USE
    if card.free_memory < ask.memory_on(card):
        return Refusal.MEMORY
    if card.free_cores < ask.cores:
        return Refusal.CORES
    if not ask.cores and card.cores and card.used_cores == card.cores:
        return Refusal.CORES_FULL
    return None


def wants_idle(card: CardState, ask: VgpuRequest, card_annotations: CardAnnotations) -> bool:
    """Whether only an idle card will do: by the policy `mutex`, or for all cores of an unscaled card."""
    return card_annotations.idle_cards_only or card.cores == ask.cores == WHOLE


def room_of(card: CardState, ask: VgpuRequest, card_annotations: CardAnnotations) -> int:
    """The number of vGPUs of this ask that the card takes, one after the other."""
    if refusal_of(card, ask, card_annotations) is not None:
        return 0
    if wants_idle(card, ask, card_annotations):
        return 1
    room = card.count - card.used_count
    if memory := ask.memory_on(card):
        room = min(room, card.free_memory // memory)
    return min(room, card.free_cores // ask.cores) if ask.cores else room
