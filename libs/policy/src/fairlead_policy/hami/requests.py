"""A container's vGPU requests, with all that HAMi fills in where the container says nothing.

Kueue reads the pod template before HAMi's webhook has run, so none of these defaults are visible to it.
"""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.cards import (
    CARD_MEMORY_PERCENT,
    CARD_RESOURCES,
    MOST_COUNTED,
    PER_VGPU,
    CardState,
)

WHOLE = 100
"""Percent: the whole of a card. As an ask for cores it means the card for oneself (`Fit`)."""

_UNIT = 1000


class VgpuRequestError(FieldError):
    """A container's ask for cards is no ask that HAMi takes. The field is the resource.

    The same bytes will never be right later.
    """


class VgpuRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A number of vGPUs, each on a card of its own, each with so much of its card."""

    count: int
    cores: int = 0
    """Percent for each; 0 takes a share of the cores without a limit."""
    memory: int = 0
    """MiB for each; 0 where it goes by percent."""
    memory_percent: int = WHOLE
    """Percent of the card's memory for each; counts only where `memory` is 0."""

    def memory_on(self, card: CardState) -> int:
        """MiB that one vGPU takes of this card. HAMi rounds a percentage down."""
        return self.memory or card.memory * self.memory_percent // WHOLE


def vgpu_request(asked: Mapping[str, int]) -> VgpuRequest | None:
    """The request of one container once HAMi's webhook and scheduler have filled in the rest.

    As `MutateAdmission` (one vGPU where only memory or cores are given; the cores of whole cards, since v2.7.0) and then
    `GenerateResourceRequests` do by the settings of HAMi's chart v2.10.0: of what is left out, memory is the whole card's,
    and cores are shared without a limit. Where HAMi would quietly take a value for nothing (a fraction of a vGPU, memory
    beyond 32 bits) or for something else (a negative share), this refuses.

    Args:
        asked: the container's asks for any resources, in base units (thousandths).

    Returns:
        The ask; None where the container asks for no card.

    Raises:
        VgpuRequestError: a value that HAMi would not take as it is meant.
    """
    count, memory, percent, cores = (_whole(name, asked.get(name)) for name in CARD_RESOURCES)
    if (percent or 0) > WHOLE:
        raise VgpuRequestError(CARD_MEMORY_PERCENT, percent, "a percentage is between 0 and 100")
    if count is None and any(name in asked for name in PER_VGPU):
        count = 1
    if not count:
        return None
    if cores is None:
        # `defaultExclusiveCoreIfNeeded`: memory that is named, even as 0, is not a whole card's; a percentage decides
        # where both are there.
        means_whole_cards = memory is None if percent is None else percent == WHOLE
        cores = WHOLE if means_whole_cards else 0
    return VgpuRequest(
        count=count, cores=min(cores, WHOLE), memory=memory or 0, memory_percent=percent or WHOLE
    )


def vgpu_requests(containers: Iterable[Mapping[str, int]]) -> tuple[VgpuRequest, ...]:
    """The requests of a pod's containers that ask for cards at all; see `vgpu_request`."""
    asks = map(vgpu_request, containers)
    return tuple(ask for ask in asks if ask is not None)


def _whole(name: str, amount: int | None) -> int | None:
    if amount is None:
        return None
    number, rest = divmod(amount, _UNIT)
    if rest or number < 0:
        raise VgpuRequestError(name, amount / _UNIT, "HAMi takes whole numbers from 0 up")
    if number > MOST_COUNTED:
        raise VgpuRequestError(name, number, "more than HAMi counts")
    return number
