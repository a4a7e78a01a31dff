"""Cards after HAMi: names of its resources and annotations, and what is stated of one card.

The names are the defaults of HAMi's chart v2.10.0 (https://github.com/Project-HAMi/HAMi). `card_annotations` reads what
HAMi writes on nodes and pods.
"""

from collections.abc import Iterable
from typing import Annotated

import msgspec

MOST_COUNTED = 2**31 - 1
"""HAMi counts vGPUs, MiB and percents in an int32 (`DeviceInfo` and `ContainerDeviceRequest` in
`pkg/device/devices.go` @v2.10.0)."""
type CardCount = Annotated[int, msgspec.Meta(ge=0, le=MOST_COUNTED)]
"""An amount of vGPUs, MiB or percent, as HAMi counts them."""

VGPUS = "nvidia.com/gpu"
"""Number of vGPUs, each on a card of its own."""
CARD_MEMORY = "nvidia.com/gpumem"
"""MiB for each vGPU."""
CARD_MEMORY_PERCENT = "nvidia.com/gpumem-percentage"
"""Percent of its card's memory for each vGPU."""
CARD_CORES = "nvidia.com/gpucores"
"""Percent of its card's cores for each vGPU."""

CARD_RESOURCES = (VGPUS, CARD_MEMORY, CARD_MEMORY_PERCENT, CARD_CORES)
PER_VGPU = (CARD_MEMORY, CARD_MEMORY_PERCENT, CARD_CORES)
"""Resources that are stated for each vGPU, wherever they stand: they are never summed up over pods."""

REGISTER = "hami.io/node-nvidia-register"
"""Annotation of a node: its cards."""
CORDON = "hami.io/device-cordon"
"""Annotation of a node: cards that take nobody new."""
ALLOCATED = "hami.io/vgpu-devices-allocated"
"""Annotation of a pod: the parts of cards that it holds."""
HOLDER = "hami.io/vgpu-node"
"""Annotation of a pod that HAMi gave cards, with their node. Since HAMi v2.5.0 it is a label, too."""

NODE_POLICY = "hami.io/node-scheduler-policy"
CARD_POLICY = "hami.io/gpu-scheduler-policy"
USE_MODEL = "nvidia.com/use-gputype"
AVOID_MODEL = "nvidia.com/nouse-gputype"
USE_UUID = "nvidia.com/use-gpuuuid"
AVOID_UUID = "nvidia.com/nouse-gpuuuid"
NUMA_BIND = "nvidia.com/numa-bind"
MODE = "nvidia.com/vgpu-mode"
CARD_ANNOTATIONS = (NODE_POLICY, CARD_POLICY, USE_MODEL, AVOID_MODEL, USE_UUID, AVOID_UUID, NUMA_BIND, MODE)
"""Annotations of a pod template: the cards that its pods accept, and how HAMi chooses among them."""

# Go's strconv.ParseBool, by which HAMi reads its own words.
TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})


class CardState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A physical card as its node registers it, after HAMi's scaling, with what pods hold of it."""

    uuid: str
    count: int
    """Number of vGPUs that may share the card."""
    memory: int
    """Memory in MiB."""
    cores: int
    """Compute capacity in percent: where HAMi scales cores, 100 % is not the whole card."""
    model: str = ""
    index: int = 0
    numa: int = 0
    mode: str = "hami-core"
    health: bool = True
    cordoned: bool = False
    used_count: int = 0
    used_memory: int = 0
    used_cores: int = 0

    def taken(self, memory: int, cores: int) -> "CardState":
        """The card with one vGPU more in use."""
        return msgspec.structs.replace(
            self,
            used_count=self.used_count + 1,
            used_memory=self.used_memory + memory,
            used_cores=self.used_cores + cores,
        )

    def emptied(self) -> "CardState":
        """The card with nothing in use."""
        return msgspec.structs.replace(self, used_count=0, used_memory=0, used_cores=0)

    @property
    def free_memory(self) -> int:
        """MiB that nobody holds; below zero where a scaling was lowered under running pods."""
        return self.memory - self.used_memory

    @property
    def free_cores(self) -> int:
        """Percent that nobody holds: where cores are scaled, 100 % is not the whole card."""
        return self.cores - self.used_cores


class Allocation(msgspec.Struct, frozen=True, kw_only=True):
    """One vGPU that a container holds: memory in MiB and cores in percent of that card."""

    uuid: str
    memory: int
    cores: int


def with_use(cards: Iterable[CardState], held: Iterable[Allocation]) -> tuple[CardState, ...]:
    """The cards with that much more in use. What is held of cards that are not among them counts nowhere."""
    found = {card.uuid: card for card in cards}
    for one in held:
        if (card := found.get(one.uuid)) is not None:
            found[one.uuid] = card.taken(one.memory, one.cores)
    return tuple(found.values())
