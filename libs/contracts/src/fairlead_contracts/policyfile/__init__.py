"""The policy file: its types, its reading and its schema."""
