"""`fairlead watchdog`: reserved ClusterQueues fill their gaps by themselves while nobody leads.

Where to find what: `vigil` decides when, `queues` does it to a ClusterQueue, `running` watches who leads.
"""
