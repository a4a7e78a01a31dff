"""Fairlead on Kubernetes: transport, the fields that we use of each kind, reflectors and patches.

The only importer of kubernetes-asyncio, and of that only the old auth providers: requests are raw JSON over aiohttp
into msgspec structs. Errors are typed: `RetryableKubeError` or `FatalKubeError`.

From the ground up: `kubeconfig` finds the cluster, `credentials` sign in, `transport` sends, `answers` turns a refusal
into its error; `client` has the typed calls, `throttle` holds writes back, `discovery` tells what is served and
allowed. `reflector` mirrors one kind. `objects`, `pods`, `workloads`, `queues` and `core` are the shapes, `resources`
the kinds. `demand` counts as Kueue does; `lever` asks Kueue which lever it obeys.
"""
