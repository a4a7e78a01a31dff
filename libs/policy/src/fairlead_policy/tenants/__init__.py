"""What one top-level tenant is served, in its own sequence.

`tenant_queue` is what one tenant has, `own_line` its waiting jobs; `sorted_jobs` has those of many side by side, which
`lone_tenants` reads in one pass. `tenant_tree` is a tree of tenant queues, all values: `merging` makes the sequences of
its nodes, `service_order` is that of its top. With H-DRF `serving` serves them one by one by the shares of `rescaling`,
and `served` is what others read of that. `tenant_share` is what a tenant has and may have.
"""
