"""Draws the pictures of docs/policy.md: `python bench/pictures.py` writes docs/pictures/*.svg, the same bytes each time.

Each is computed with the core that orders real clusters, in a closed loop of a simulated pool.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from pictures_loop import CARDS, MINUTE, Course, Submission, rules, run
from pictures_plots import Axis, Line, Plot, Point, svg

from fairlead_contracts.decisions import Place
from fairlead_contracts.instants import HOUR, Micros
from fairlead_policy import PoolOrder, WaitingJob
from fairlead_policy.moves import passes_at

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
DEFAULT_RATE = Fraction(6, 100)
TENANTS = {"ada": 3, "bob": 2, "cyd": 1}
KINDS = {"ada": "a", "bob": "b", "cyd": "c"}
PLENTY = 2000
"""Jobs: more than are started."""
SHARES = Axis("share of the pool", [(part / 100, f"{part} %") for part in range(0, 101, 25)])
RATES = (0.005, 0.02, 0.06, 0.2, 0.6, 2, 6, 20)
"""Share an hour; the first stands for none at all on the logarithmic axis."""


def hours(count: int, step: int = 1) -> Axis:
    """Time from the beginning."""
    return Axis("hours", [(hour, str(hour)) for hour in range(0, count + 1, step)])


def shares_over(course: Course, length: int, weights: Mapping[str, int]) -> list[Line]:
    """Each tenant's part of the pool over time, with what it is entitled to at the end."""
    steps = range(5, 60 * length + 1, 5)
    total = sum(weights.values())
    return [
        Line(
            f"{tenant}, weight {weight}",
            KINDS[tenant],
            [
                (0.0, 0.0),
                *((step / 60, course.share_at(tenant, step * MINUTE, 5 * MINUTE)) for step in steps),
            ],
            part=weight / total,
        )
        for tenant, weight in weights.items()
    ]


def shares() -> list[Plot]:
    """Three tenants come one after the other to an empty pool, without aging and with the default."""
    floods = [
        Submission(0, "cyd", PLENTY),
        Submission(HOUR, "ada", PLENTY),
        Submission(2 * HOUR, "bob", PLENTY),
    ]
    marks = [(0.0, "cyd comes"), (1.0, "ada comes"), (2.0, "bob comes")]
    plots = []
    for rate, title in (
        (Fraction(0), f"Three tenants on {CARDS} cards, share_per_hour 0; dashed: entitlement by weight"),
        (
            DEFAULT_RATE,
            "The same with share_per_hour 0.06",
        ),
    ):
        course = run(rules(TENANTS, share_per_hour=rate), floods, 6 * HOUR)
        plots.append(Plot(title, hours(6), SHARES, shares_over(course, 6, TENANTS), marks))
    return plots


def weights() -> list[Plot]:
    """A weight is changed while all have jobs waiting."""
    floods = [Submission(0, tenant, PLENTY) for tenant in TENANTS]
    before, after = dict.fromkeys(TENANTS, 1), {"ada": 4, "bob": 1, "cyd": 1}
    course = run(rules(before, share_per_hour=DEFAULT_RATE), floods, 6 * HOUR, [(2 * HOUR, after)])
    title = "All weigh 1, then ada weighs 4; dashed: entitlement after the change"
    lines = shares_over(course, 6, after)
    return [Plot(title, hours(6), SHARES, lines, [(2.0, "ada: 1 to 4")])]


def aging() -> list[Plot]:
    """Waits and shares by the rate of aging, of tenants that all ask for as much, whatever their weight."""
    # 36 jobs an hour and tenant, of 25.5 minutes each: all three want the same, together nearly twice the pool.
    length = 24
    floods = [Submission(turn * 15 * MINUTE, tenant, 9) for turn in range(4 * length) for tenant in TENANTS]
    courses = {
        rate: run(
            rules(TENANTS, share_per_hour=Fraction(0) if rate == RATES[0] else Fraction(str(rate))),
            floods,
            length * HOUR,
        )
        for rate in RATES
    }
    ticks = [(rate, "0" if rate == RATES[0] else f"{rate:g}") for rate in RATES]
    axis = Axis("share_per_hour (default 0.06)", ticks, logarithmic=True)
    total = sum(TENANTS.values())
    waits = _by_rate(lambda course, tenant: max(course.waits[tenant]) / HOUR, courses)
    parts = _by_rate(Course.mean_share, courses, {name: weight / total for name, weight in TENANTS.items()})
    top = max(y for line in waits for _, y in line.points)
    scale = Axis("hours", [(hour, str(hour)) for hour in range(0, int(top) + 5, 4)])
    mark = [(0.06, "default")]
    return [
        Plot("The longest wait of a job that started within a day", axis, scale, waits, mark),
        Plot("Mean share of the pool; dashed: entitlement", axis, SHARES, parts, mark),
    ]


def _by_rate(
    figure: Callable[[Course, str], float],
    courses: Mapping[float, Course],
    parts: Mapping[str, float] | None = None,
) -> list[Line]:
    return [
        Line(
            f"{tenant}, weight {weight}",
            KINDS[tenant],
            [(rate, figure(course, tenant)) for rate, course in courses.items()],
            part=None if parts is None else parts[tenant],
        )
        for tenant, weight in TENANTS.items()
    ]


def cap() -> list[Plot]:
    """Two jobs age alike until one is beyond the cap; then the other passes it."""
    scored_by = rules({"ada": 1, "cyd": 1}, share_per_hour=DEFAULT_RATE, cap_hours=12)
    order = PoolOrder(scored_by)
    order.run("r", "cyd", {"gpu": CARDS // 2})
    for uid, tenant, submitted in (("old", "cyd", 0), ("young", "ada", 10 * HOUR)):
        order.wait(
            WaitingJob(
                uid=uid,
                scope=tenant,
                id=uid,
                tenant=tenant,
                urgency="normal",
                submitted=submitted,
                demand={"gpu": 1},
                queue=("cluster", "queue"),
            )
        )
    old, young = (_place(order, uid) for uid in ("old", "young"))
    flip = passes_at(young, old, scored_by, 0) or 0

    def worth(place: Place, hour: float) -> float:
        return 0.06 * min(max(0.0, hour - place.submitted / HOUR), 12.0) - place.tag

    def line(name: str, kind: str, place: Place, begin: int) -> Line:
        points: Sequence[Point] = [(hour / 2, worth(place, hour / 2)) for hour in range(2 * begin, 49)]
        return Line(name, kind, points)

    lines = [line("old: tag 0.5", "b", old, 0), line("young: tag 0", "a", young, 10)]
    heights = Axis("worth of waiting - tag", [(tick / 4, f"{tick / 4:g}") for tick in range(-2, 4)])
    marks = [
        (12.0, "the old one reaches the cap"),
        (flip / HOUR, f"{flip / HOUR:.1f} h: the young one passes"),
    ]
    title = "share_per_hour 0.06, cap_hours 12: the higher line goes first"
    return [Plot(title, hours(24, 3), heights, lines, marks)]


def _place(order: PoolOrder, uid: str, now: Micros = 0) -> Place:
    place = order.place(uid, now)
    if place is None:
        raise LookupError(uid)
    return place


DRAWN: Mapping[str, Callable[[], list[Plot]]] = {
    "shares": shares,
    "weights": weights,
    "aging": aging,
    "cap": cap,
}


def main() -> None:
    """Draw them all."""
    reader = argparse.ArgumentParser(description="Draws the pictures of docs/policy.md.")
    reader.add_argument("--into", type=Path, default=PICTURES, help="a folder (default: docs/pictures)")
    into: Path = reader.parse_args().into
    into.mkdir(parents=True, exist_ok=True)
    for name, plots in DRAWN.items():
        (into / f"{name}.svg").write_text(svg(plots()), encoding="utf-8")


if __name__ == "__main__":
    main()
