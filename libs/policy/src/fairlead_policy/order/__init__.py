"""The order of one pool.

A `pool_snapshot` is what an `order` is made from; `pool_facts` knows jobs by uid and makes snapshots of what it is told.
`top_level_view` puts tenants side by side; `head_columns` keeps what queues' heads are made from, tenant by tenant. `positions`
are what others see, and `merging` puts those of several shards together; `position_columns` and `sibling_standings` hold them as
columns. `shares` are told beside tags.
"""
