"""The watcher: states on NATS what a Kubernetes cluster with Kueue has. Facts only, no policy."""
