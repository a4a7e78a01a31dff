"""Does a gang fit the nodes, and where: all of its pods or none, by binpack or spread, per card for GPU fractions.

`placing.place` answers with a `Placement`, checked pod by pod before it is returned, or with an `Unfit` that says what stands
in the way and whether that is proven. Quota is not asked here: a job may well have quota and fit nowhere.

`shapes` are nodes and gangs, with what labels and taints let them use, `card_fit` and `packing` are the cards of one node,
`node_table` is nodes as columns, `card_table` cards as columns, `filling` puts pods on them, `search` proves, `verify` checks,
`diagnosis` says why not, `unschedulable` are the reasons, which people hear in words. `facts` are a snapshot's nodes and jobs,
`observed` are Kubernetes' nodes and pods, for all who ask of a cluster itself, `feasibility` are those that services state.
`results` are the two answers, and nodes after pods were put on them. Modelled of Kubernetes: node selectors, required node
affinity, taints, resources, the number of pods. Not modelled: affinity between pods, topology spread constraints, host ports,
volumes' zones.

`placing` and what it stands on count in NumPy's columns; who only reads a snapshot's nodes and jobs goes without.
"""
