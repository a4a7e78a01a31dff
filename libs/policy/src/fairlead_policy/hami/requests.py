"""A container's vGPU requests, with all that HAMi fills in where the container says nothing.

Kueue reads the pod template before HAMi's webhook has run, so none of these defaults are visible to it.
"""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.frontend.cards import (
    CARD_CORES,
    CARD_MEMORY,
    CARD_MEMORY_PERCENT,
    MOST_COUNTED,
    VGPUS,
)
from fairlead_policy.hami.cards import Card

WHOLE = 100
"""Percent: the whole of a card. As an ask for cores it means the card for oneself (`Fit`)."""

_UNIT = 1000


class AskError(FieldError):
    """A container's ask for cards is no ask that HAMi takes. The field is the resource.

    The same bytes will never be right later.
    """


class HamiNames(msgspec.Struct, frozen=True, kw_only=True):
    """The extended resources' names; `resourceCountName` and its siblings in the ConfigMap hami-scheduler-device."""

    count: str = VGPUS
    memory: str = CARD_MEMORY
    memory_percent: str = CARD_MEMORY_PERCENT
    cores: str = CARD_CORES

    @property
    def all(self) -> tuple[str, str, str, str]:
        """All four. HAMi's extender answers for them; kube-scheduler leaves them out (`ignoredByScheduler`)."""
        return self.count, self.memory, self.memory_percent, self.cores


class HamiDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's settings that fill in what is left out; the values of HAMi's chart v2.10.0."""

    names: HamiNames = HamiNames()
    memory: int = 0
    """`defaultMemory` in MiB; 0 stands for the whole card."""
    cores: int = 0
    """`defaultCores` in percent; 0 shares the cores without a limit."""
    count: int = 1
    """`defaultGPUNum`, where memory or cores are asked for and no count is; 0 adds none."""
    memory_factor: int = 1
    """`memoryFactor`: what one unit of the memory resource is in MiB."""


class VgpuRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A number of vGPUs, each on a card of its own, each with so much of its card."""

    count: int
    cores: int = 0
    """Percent for each; 0 takes a share of the cores without a limit."""
    memory: int = 0
    """MiB for each; 0 where it goes by percent."""
    memory_percent: int = WHOLE
    """Percent of the card's memory for each; counts only where `memory` is 0."""

    def memory_on(self, card: Card) -> int:
        """MiB that one vGPU takes of this card. HAMi rounds a percentage down."""
        return self.memory or card.memory * self.memory_percent // WHOLE


_STANDARD = HamiDefaults()


def vgpu_ask(
    limits: Mapping[str, int], requests: Mapping[str, int] | None = None, defaults: HamiDefaults = _STANDARD
) -> VgpuRequest | None:
    """The request of one container once HAMi's webhook and scheduler have filled in the rest.

    As `MutateAdmission` (a count where only memory or cores are given; the cores of whole cards, since v2.7.0) and then
    `GenerateResourceRequests` (limits before requests; defaults) do. Where HAMi would quietly take a value for nothing
    (a fraction of a vGPU, memory beyond 32 bits) or for something else (a negative share), this refuses.

    Args:
        limits: of the container, in base units (thousandths), any resources.
        requests: of the container, likewise.
        defaults: of the scheduler.

    Returns:
        The ask; None where the container asks for no card.

    Raises:
        AskError: a value that HAMi would not take as it is meant.
    """
    stated = _ContainerAsk(limits, requests or {}, defaults.names)
    count = stated.count
    if count is None and stated.limits_a_fraction and defaults.count > 0:
        count = defaults.count
    if not count:
        return None
    memory = (stated.memory or 0) * max(defaults.memory_factor, 1)
    if memory > MOST_COUNTED:
        raise AskError(defaults.names.memory, memory, "more MiB than HAMi counts")
    percent = stated.memory_percent or 0
    if not memory and not percent:
        memory = defaults.memory
    cores = stated.cores
    if cores is None:
        cores = WHOLE if stated.means_whole_cards else defaults.cores
    return VgpuRequest(count=count, cores=min(cores, WHOLE), memory=memory, memory_percent=percent or WHOLE)


def vgpu_asks(containers: Iterable[Mapping[str, int]]) -> tuple[VgpuRequest, ...]:
    """The requests of a pod's containers that ask for cards at all; see `vgpu_ask`."""
    asks = map(vgpu_ask, containers)
    return tuple(ask for ask in asks if ask is not None)


class _ContainerAsk:
    """A container's own words, before HAMi fills in the rest."""

    def __init__(self, limits: Mapping[str, int], requests: Mapping[str, int], names: HamiNames) -> None:
        self._values = {**requests, **limits}
        self._names = names
        self.count = self._whole(names.count)
        self.memory = self._whole(names.memory)
        self.memory_percent = self._whole(names.memory_percent)
        self.cores = self._whole(names.cores)
        self.limits_a_fraction = any(name in limits for name in names.all if name != names.count)
        if (self.memory_percent or 0) > WHOLE:
            raise AskError(names.memory_percent, self.memory_percent, "a percentage is between 0 and 100")

    @property
    def means_whole_cards(self) -> bool:
        """Whether HAMi's webhook makes the cards exclusive; only where cores are left out.

        `defaultExclusiveCoreIfNeeded`. Memory that is named, even as 0, is not a whole card's; a percentage decides
        where both are there.
        """
        if self.memory_percent is not None:
            return self.memory_percent == WHOLE
        return self.memory is None

    def _whole(self, name: str) -> int | None:
        amount = self._values.get(name)
        if amount is None:
            return None
        number, rest = divmod(amount, _UNIT)
        if rest or number < 0:
            raise AskError(name, amount / _UNIT, "HAMi takes whole numbers from 0 up")
        if number > MOST_COUNTED:
            raise AskError(name, number, "more than HAMi counts")
        return number
