"""Explanation of a waiting job: why it stands where it stands, and what would move it.

`explanation` puts together the parts of its tag, its `neighbourhood`, and what would move it: `counterfactuals` are solved
exactly, `what_if` tries others in the order itself. The `_text` modules and `reasons` say all of that in words.
"""
