"""One document with all facts: made `from_state`, and answered by `ordering`, `levels`, `reserve`, `placement` and `explained`.

`stated_facts` is the fold of what clusters state, for snapshots, scorers and admitters. `card_shares` charges GPU fractions
to a snapshot's pools, `stated_cards` those that clusters state.
"""
