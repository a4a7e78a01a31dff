"""Manifests that the doctor's remedies print."""


def local_queue_manifest(name: str, namespace: str, cluster_queue: str) -> str:
    """A LocalQueue of a namespace that leads to a ClusterQueue, as YAML."""
    return f"""apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{clusterQueue: {cluster_queue}}}"""
