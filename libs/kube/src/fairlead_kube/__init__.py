"""Fairlead on Kubernetes: transport, the fields that we use of each kind, reflectors and patches.

The only importer of kubernetes-asyncio.
"""
