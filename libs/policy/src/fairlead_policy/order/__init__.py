"""The order of one pool.

`pool_order` is kept up as facts change, a `view` puts its tenants side by side. `batch` puts a flat pool in order at once.
`positions` are what others see, and merge shards; `position_columns` and `tree_columns` hold them as columns, made for
many jobs at once by `batch_positions` and, of what `table_sources` finds, by `position_table`. `shares` are told beside tags.
"""
