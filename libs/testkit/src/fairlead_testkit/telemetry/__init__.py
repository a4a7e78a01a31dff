"""Servers that a deployment has beside Fairlead: Prometheus, Jaeger, a registry of images."""
