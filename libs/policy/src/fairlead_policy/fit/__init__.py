"""Does a gang fit the nodes, and where: all of its pods or none, by binpack or spread, per card for GPU fractions.

`place` answers with a `Placement`, checked pod by pod before it is returned, or with an `Unfit` that says what stands in
the way and whether that is proven. Quota is not asked here: a job may well have quota and fit nowhere.

`shapes` are nodes and gangs, `filters` are labels and taints, `card_fit` and `packing` are the cards of one node,
`node_table` is nodes as columns, `card_table` cards as columns, `filling` puts pods on them, `search` proves, `verify` checks, `diagnosis` says why not,
`words` says it to people. `facts` are a snapshot's nodes and jobs, `bare` is a node as Kubernetes describes it, `results` the two answers, and nodes after pods were put on them. Modelled of Kubernetes: node
selectors, required node affinity, taints, resources, the number of pods. Not modelled: affinity between pods, topology
spread constraints, host ports, volumes' zones.

Who works with placements alone finds what it takes here; all else has its own module. `place` is imported with its
name: it counts in NumPy's columns, and who only reads a snapshot's nodes and jobs goes without.
"""

from typing import TYPE_CHECKING

from fairlead_policy.fit.bare import bare_node
from fairlead_policy.fit.results import PlacedPod, Placement, Unfit, with_pods
from fairlead_policy.fit.shapes import FitNode, Gang, NodeTaint, PodShape, PodToleration, Requirement
from fairlead_policy.fit.unschedulable import AskRefused, NoZoneHoldsAll
from fairlead_policy.fit.words import all_in_words, in_words

if TYPE_CHECKING:
    from fairlead_policy.fit.placing import place

__all__ = [
    "AskRefused",
    "FitNode",
    "Gang",
    "NoZoneHoldsAll",
    "NodeTaint",
    "PlacedPod",
    "Placement",
    "PodShape",
    "PodToleration",
    "Requirement",
    "Unfit",
    "all_in_words",
    "bare_node",
    "in_words",
    "place",
    "with_pods",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """`place`, imported on demand (PEP 562)."""
        if name != "place":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from fairlead_policy.fit.placing import place

        globals()[name] = place
        return place
