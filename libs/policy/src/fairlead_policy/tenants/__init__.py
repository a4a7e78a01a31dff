"""The service order of one top-level tenant, in its own sequence.

`tenant_queue` is what one tenant has, `own_line` its waiting jobs; `sorted_jobs` has those of many side by side, which
are scored in one pass. `tenant_tree` is a tree of tenant queues, all values: `merging` makes the sequences of
its nodes, `service_order` is that of its top, `sequence_columns` are those of many trees side by side. With H-DRF `rescaling` says what a node counts to hold,
from the sums of `fixed_point`; `hdrf_filling` serves jobs one by one as far as somebody looks, and
`hdrf_sequences` are the sequences that others read of that, or of all jobs.
"""
