"""GPU fractions after HAMi: what a container asks of cards once HAMi's defaults are applied, and which card takes it.

`asks` turns a container's resources into a vGPU ask, `wishes` reads a pod's annotations, `register` and `allocations`
are what HAMi writes on nodes and pods (contracts decode it), `cards` is a physical card and what is used of it, `admission` is HAMi's test
of one card, `sharing` puts many equal pods on the cards of one node, `charges` says what an ask weighs in a pool.

The rules are those of https://github.com/Project-HAMi/HAMi at v2.10.0, file `pkg/device/nvidia/device.go` unless another
is named. Units are HAMi's: MiB of card memory, percent of a card's cores. Not modelled: cards in MIG mode (they are
told apart, so that no answer rests on them), HAMi's quota of a namespace, asks of init containers, the handshake.
"""

from fairlead_contracts.frontend.card_annotations import AllocatedError, RegisterError, decode_allocated
from fairlead_contracts.frontend.cards import ALLOCATED, CORDON, REGISTER, Allocation
from fairlead_policy.fractions.admission import Refusal, refusal_of
from fairlead_policy.fractions.allocations import with_use
from fairlead_policy.fractions.asks import HamiDefaults, HamiNames, VgpuAsk, vgpu_ask, vgpu_asks
from fairlead_policy.fractions.cards import Card
from fairlead_policy.fractions.charges import CardPool
from fairlead_policy.fractions.errors import AskError
from fairlead_policy.fractions.register import card_of, cards_of, decode_register
from fairlead_policy.fractions.wishes import CardWishes, Policies, Strategy, policies_of, wishes_of

__all__ = [
    "ALLOCATED",
    "CORDON",
    "REGISTER",
    "AllocatedError",
    "Allocation",
    "AskError",
    "Card",
    "CardPool",
    "CardWishes",
    "HamiDefaults",
    "HamiNames",
    "Policies",
    "Refusal",
    "RegisterError",
    "Strategy",
    "VgpuAsk",
    "card_of",
    "cards_of",
    "decode_allocated",
    "decode_register",
    "policies_of",
    "refusal_of",
    "vgpu_ask",
    "vgpu_asks",
    "wishes_of",
    "with_use",
]
