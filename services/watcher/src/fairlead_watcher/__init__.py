"""The watcher: states on NATS what a Kubernetes cluster with Kueue has. Facts only, no policy.

A service, `python -m fairlead_watcher`; nothing here is imported by others.

Where to find what. The core, pure:

- `objects`: `workload_facts`, `quota` and `workload_context` are what is kept of Kueue's objects, `cards` what HAMi's are;
  `metadata` and `class_request` what people wrote on them
- `statements`: `holds` says why something cannot start; `jobs` makes a job of a Workload, `enforcement` and `pools`
  make pools and queues of quota

`cluster_view` keeps all of it up to date object by object. The shell: `sources` mirror the kinds that `kinds` names (with
the rights that it takes), `admitter` is what the cluster's admitter says, `watcher` is the loop, the bus's announcer states
all of it on NATS and tells what happened between two statements, `app` wires it.
"""
