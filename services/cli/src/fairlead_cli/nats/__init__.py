"""A NATS server made fit for Fairlead: accounts, keys, streams; what each user may do, tried."""
