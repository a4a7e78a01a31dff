"""The meaning of the policy document: `rulebook` applies it to facts, `pool_rules` are what one pool is scored by.

`entitlements` are the parts that weights make, `jobs` a waiting job as its order knows it.
"""
