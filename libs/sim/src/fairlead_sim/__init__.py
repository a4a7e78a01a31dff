"""A simulated cluster: as a service on the same contracts as the real ones, and as a library in virtual time.

`SimCluster` is the pure core that both share: nodes, pools, queues, accounts, jobs; it admits as Kueue does. `VirtualRun`
drives it through a workload under a discipline. `python -m fairlead_sim` serves it, with its truth in a SQLite file.
`demo_workload` makes the demo's workload from a real trace.

Where to find what. The core: `cluster`, with its `pool`s and their `lines`, `jobs`; `changes` leave
it. The service: `service` is the loop, `store` the file, `statements` are what the bus's announcer tells NATS, `app` wires
it. Virtual time: `workload`, `trace` and `demo` make jobs, `virtual` runs them, `meter` measures.
"""
