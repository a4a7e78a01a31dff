"""Ownership: who lives, who leads, and whose a subject is."""
