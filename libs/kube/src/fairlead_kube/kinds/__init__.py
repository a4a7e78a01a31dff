"""Kinds of objects: the fields that we use of each, their paths, and amounts as Kueue counts them. Pure."""
