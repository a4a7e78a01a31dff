"""Applying: plans and releases carried out in a frontend, and how long it is left alone where that fails."""
