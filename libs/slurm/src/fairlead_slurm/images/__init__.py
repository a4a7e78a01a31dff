"""Container images, asked for where they lie: names, credentials and the registry's HTTP API."""
