"""Deciding: what a shard's decision says, who owns the shard, and when a decision leaves."""
