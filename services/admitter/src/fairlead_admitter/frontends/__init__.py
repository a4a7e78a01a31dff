"""Adapters: one module for each frontend, and the only places that know it."""

from fairlead_admitter.frontends.sim import SimFrontend

__all__ = ["SimFrontend"]
