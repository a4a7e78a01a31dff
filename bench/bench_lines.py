"""One figure, one line of JSON."""

import json

from fairlead_cli.benching.measuring import quantile

__all__ = ["quantile", "say"]


def say(name: str, **figures: object) -> None:
    """Print a figure; floats to three digits that count."""
    rounded = {
        key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in figures.items()
    }
    print(json.dumps({"bench": name, **rounded}), flush=True)
