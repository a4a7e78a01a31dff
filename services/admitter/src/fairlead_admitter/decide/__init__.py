"""Deciding: from what is known of a pool to the levels that follow, with reasons. No I/O, no clock of its own."""
