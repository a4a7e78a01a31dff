"""Adapters: one for each way to a frontend, and the only places that know it."""
