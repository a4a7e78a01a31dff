"""The server: its program, streams, accounts and grants, and whether it lets do what the grants say."""
