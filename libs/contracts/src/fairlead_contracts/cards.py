"""What HAMi calls the parts of cards: names of resources and annotations that snapshots and the policy core share.

The names are the defaults of HAMi's chart v2.10.0 (https://github.com/Project-HAMi/HAMi).
"""

VGPUS = "nvidia.com/gpu"
"""How many vGPUs, each on a card of its own."""
CARD_MEMORY = "nvidia.com/gpumem"
"""MiB for each vGPU."""
CARD_MEMORY_PERCENT = "nvidia.com/gpumem-percentage"
"""Percent of its card's memory for each vGPU."""
CARD_CORES = "nvidia.com/gpucores"
"""Percent of its card's cores for each vGPU."""

CARD_RESOURCES = (VGPUS, CARD_MEMORY, CARD_MEMORY_PERCENT, CARD_CORES)
PER_VGPU = (CARD_MEMORY, CARD_MEMORY_PERCENT, CARD_CORES)
"""Those that are said of each vGPU, wherever they stand: they are never summed up over pods."""

REGISTER = "hami.io/node-nvidia-register"
"""On a node: its cards."""
CORDON = "hami.io/device-cordon"
"""On a node: cards that take nobody new."""
ALLOCATED = "hami.io/vgpu-devices-allocated"
"""On a pod: what it holds of cards."""
