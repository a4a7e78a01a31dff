"""The admitter: makes one cluster follow the order with the fewest writes, and takes in submitted jobs."""

from fairlead_admitter.settings import AdmitterSettings

__all__ = ["AdmitterSettings"]
