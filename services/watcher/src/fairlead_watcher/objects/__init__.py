"""Objects of Kubernetes: what is kept of each, and what each says by itself. Pure."""
