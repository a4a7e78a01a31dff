"""Fairlead on Kubernetes: transport, the fields that we use of each kind, reflectors and patches.

The only importer of kubernetes-asyncio, and of that only the old auth providers: requests are raw JSON over aiohttp
into msgspec structs. Errors are typed: `RetryableKubeError` or `FatalKubeError`.

From the ground up, in two rooms that do not know one another:

- `connection`: `kubeconfig` finds the cluster, in files whose form `kubeconfig_file` reads; `credentials` sign in,
  `transport` sends, `throttle` holds writes back
- `kinds`: `objects`, `pods`, `workloads`, `queues` and `core` are the shapes, `resources` the kinds; `demand` counts as
  Kueue does, `observed` describes nodes and pods to who asks which fit which

`client` has the typed calls, on both. `reflector` mirrors one kind, `discovery` tells what is served and allowed,
`lever` asks Kueue which lever it obeys.
"""
