"""Round values along an axis."""

from math import ceil, floor, log10


def ticks(top: float, count: int) -> list[float]:
    """Round values from 0 up to `top`, about `count` steps of them."""
    rough = top / count
    power = 10.0 ** floor(log10(rough)) if rough > 0 else 1.0
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [step * number for number in range(floor(top / step + 1e-9) + 1)]


def share_ceiling(share: float) -> float:
    """The end of a share axis: the next tenth above, at most the whole."""
    return min(1.0, max(0.1, ceil(share * 10 - 1e-9) / 10))
