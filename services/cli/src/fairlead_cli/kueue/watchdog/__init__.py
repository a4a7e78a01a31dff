"""`fairlead watchdog`: what shall not wait while nobody leads, or nobody answers, goes on by itself.

Where to find what: reserved ClusterQueues fill their gaps: `queues` decides when, and does it to one of them. Admission
checks that nobody answers are let through by `checks`. `watchdog_run` watches who leads.
"""
