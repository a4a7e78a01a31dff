"""Streams: what is published, replayed and mirrored of them, buckets, and compare-and-swap on a subject."""
