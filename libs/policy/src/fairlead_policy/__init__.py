"""The pure core that decides: rules from the policy document, the order of waiting jobs, and levels from an order.

No I/O, clock, randomness or logging: facts and an instant go in, the same facts give the same bytes. The order is
that of weighted Dominant Resource Fairness with aging, exact: integers and fractions decide wherever floats could
be wrong.

Its rooms, each using those below it alone (the linter of imports holds that):

- `snapshot`: one document in, its order, levels, reservations, placements and explanations out; snapshots from stated facts.
- `explain`: why a job stands where it stands, what would move it, and that in words.
- `levels`: an order as few writes; where none may be written, and how well admissions follow.
- `reserve`: a promised start for the head, and who may pass it.
- `fit`: whether a gang fits the nodes, and where.
- `usage`: past use, decayed; which resources are used up.
- `order`: the order of one pool, kept up as facts change or made at once, and positions as others see them.
- `tenants`: what one top-level tenant is served, alone or as a tree, also with H-DRF.
- `exact`: shares, tags and keys in exact numbers; sorting by them.
- `hami`: GPU fractions after HAMi.
- `rules`: the policy document applied to facts; what one pool is scored by.
"""
