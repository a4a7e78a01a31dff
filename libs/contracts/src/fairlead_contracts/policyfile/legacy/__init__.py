"""Policies as older releases and the two older controllers have them."""
