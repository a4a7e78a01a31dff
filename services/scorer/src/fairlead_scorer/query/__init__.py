"""Queries: answers to people's questions, put together from the owners of a pool's shards."""
