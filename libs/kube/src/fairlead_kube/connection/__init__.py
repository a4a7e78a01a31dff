"""The way to one API server: which it is, as whom, and what it means if it refuses."""
