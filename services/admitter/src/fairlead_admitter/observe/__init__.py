"""Observing: mirrors of the state, decisions and policy, and what is known to be on its way there. Writes nothing."""
