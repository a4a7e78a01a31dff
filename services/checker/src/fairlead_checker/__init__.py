"""The checker: answers Kueue's AdmissionCheck for gang fit. Opt-in, and the one part of Fairlead in an admission path.

A service, `python -m fairlead_checker`; nothing here is imported by others.

A Workload that has quota starts when its pods, all of them, can be put on the nodes as they are now. Otherwise it gives its
quota back and says why, and comes again as soon as it fits. Where to find what. The core, pure: `facts` is what is kept of
Workloads, pods and nodes, and the gang that a Workload and its flavors make; `free_capacity` is what is free on the nodes now;
`node_snapshot` says whether the gang fits there; `steps` says what a Workload needs next; `check_entries` are what is written
of it. The shell: `sources` mirror the cluster, `check_writer` writes, `checker` is the loop, `app` wires it.
"""
