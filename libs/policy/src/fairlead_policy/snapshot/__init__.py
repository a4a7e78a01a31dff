"""One document with all facts: made `from_state`, and answered by `ordering`, `levels`, `reserve`, `placement` and `explained`.

`card_shares` charges GPU fractions to its pools, `stated_cards` those that clusters state.
"""
