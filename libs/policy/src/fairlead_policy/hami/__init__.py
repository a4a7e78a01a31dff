"""GPU fractions after HAMi: what a container asks of cards once HAMi's defaults are applied, and which card takes it.

`requests` turns a container's resources into a vGPU ask, `annotations` reads a pod's annotations (physical cards, and what
is used of them, are as contracts have them), `admission` is HAMi's test of one card, `sharing` puts many equal pods on the cards of one node, `charges` says what an ask weighs in a pool.

The rules are those of https://github.com/Project-HAMi/HAMi at v2.10.0, file `pkg/device/nvidia/device.go` unless another
is named. Units are HAMi's: MiB of card memory, percent of a card's cores. Not modelled: cards in MIG mode (they are
told apart, so that no answer rests on them), HAMi's quota of a namespace, asks of init containers, the handshake.
"""
