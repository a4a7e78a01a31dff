"""One figure, one line of JSON."""

import json
from collections.abc import Sequence


def say(name: str, **figures: object) -> None:
    """Print a figure; floats to three digits that count."""
    rounded = {
        key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in figures.items()
    }
    print(json.dumps({"bench": name, **rounded}), flush=True)


def quantile(values: Sequence[float], fraction: float) -> float:
    """The nearest-rank quantile."""
    ordered = sorted(values)
    return ordered[max(0, min(len(ordered) - 1, round(fraction * len(ordered) + 0.5) - 1))]
