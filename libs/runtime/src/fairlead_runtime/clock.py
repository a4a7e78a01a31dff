"""The wall clock of a service. Composition roots hand it on; what decides takes it, or the instant, as an argument."""

import time

_NANOS_PER_MICRO = 1000


def wall_clock() -> int:
    """The present instant as messages carry it: whole microseconds since the Unix epoch. It may be set back."""
    return time.time_ns() // _NANOS_PER_MICRO
