"""Line plots as SVG files that read well by themselves, on light and on dark pages. The same data give the same bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log10

WIDTH, HEIGHT = 760, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 130, 40, 46
_LINE_GAP = 15
STYLE = """
.page{fill:#fff}text{font:12px system-ui,sans-serif;fill:#444}.title{font-weight:600;font-size:14px;fill:#222}
.grid{stroke:#e3e3e3}.part{stroke-dasharray:5 4;stroke-width:1.2;fill:none}.line{stroke-width:2.2;fill:none}
.mark{stroke:#999;stroke-dasharray:2 3}.a{stroke:#2f66c9}.b{stroke:#c2611c}.c{stroke:#2b8a57}
text.a{fill:#2f66c9;stroke:none}text.b{fill:#c2611c;stroke:none}text.c{fill:#2b8a57;stroke:none}
@media(prefers-color-scheme:dark){.page{fill:#15181d}text{fill:#b9c0ca}.title{fill:#eef1f5}.grid{stroke:#2c323b}
.mark{stroke:#78818d}.a{stroke:#7ba6f5}.b{stroke:#f0995a}.c{stroke:#63c795}text.a{fill:#7ba6f5}text.b{fill:#f0995a}
text.c{fill:#63c795}}
""".replace("\n", "")

type Point = tuple[float, float]


@dataclass(frozen=True)
class PlotLine:
    """A line of a plot."""

    name: str
    kind: str
    """`a`, `b` or `c`: its colour."""
    points: Sequence[Point]
    part: float | None = None
    """A level drawn dashed in its colour: what it should come to."""


@dataclass(frozen=True)
class Axis:
    """An axis: what it counts, and its ticks, the first and the last of which are its ends."""

    title: str
    ticks: Sequence[tuple[float, str]]
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The place of a value on the axis, from 0 to 1."""
        low, high = self.ticks[0][0], self.ticks[-1][0]
        if self.logarithmic:
            low, high, value = log10(low), log10(high), log10(value)
        return (min(max(value, low), high) - low) / (high - low)


@dataclass(frozen=True)
class Plot:
    """A picture, or one of several below each other."""

    title: str
    x: Axis
    y: Axis
    lines: Sequence[PlotLine]
    marks: Sequence[tuple[float, str]] = ()
    """Vertical lines with what happens there."""


def svg(plots: Sequence[Plot]) -> str:
    """A file with these plots, one below the other."""
    height = HEIGHT * len(plots)
    label = escape("; ".join(plot.title for plot in plots), quote=True)
    parts = [
        f'<g transform="translate(0,{number * HEIGHT})">{"".join(_plot(plot))}</g>'
        for number, plot in enumerate(plots)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img" aria-label="{label}"><style>{STYLE}</style>'
        f'<rect class="page" width="{WIDTH}" height="{height}"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _x(plot: Plot, value: float) -> float:
    return _LEFT + plot.x.at(value) * (WIDTH - _LEFT - _RIGHT)


def _y(plot: Plot, value: float) -> float:
    return HEIGHT - _BOTTOM - plot.y.at(value) * (HEIGHT - _TOP - _BOTTOM)


def _plot(plot: Plot) -> list[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = [f'<text class="title" x="{_LEFT}" y="22">{escape(plot.title)}</text>']
    for value, name in plot.y.ticks:
        at = _y(plot, value)
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{escape(name)}</text>')
    for value, name in plot.x.ticks:
        at = _x(plot, value)
        parts.append(f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{escape(name)}</text>')
    middle = (_LEFT + right) / 2
    parts.append(
        f'<text x="{middle:.1f}" y="{bottom + 36}" text-anchor="middle">{escape(plot.x.title)}</text>'
    )
    parts.append(
        f'<text transform="translate(14,{(_TOP + bottom) / 2:.1f}) rotate(-90)" text-anchor="middle">'
        f"{escape(plot.y.title)}</text>"
    )
    for number, (value, name) in enumerate(plot.marks):
        at = _x(plot, value)
        parts.append(f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{_TOP}" y2="{bottom}"/>')
        parts.append(
            f'<text x="{at + 4:.1f}" y="{_TOP + 10 + _LINE_GAP * (number % 2)}">{escape(name)}</text>'
        )
    return [*parts, *(_line(plot, line) for line in plot.lines), *_names(plot)]


def _line(plot: Plot, line: PlotLine) -> str:
    drawn = ""
    if line.part is not None:
        at = _y(plot, line.part)
        drawn = f'<path class="part {line.kind}" d="M{_LEFT} {at:.1f}H{WIDTH - _RIGHT}"/>'
    points = " ".join(f"{_x(plot, x):.1f},{_y(plot, y):.1f}" for x, y in line.points)
    return f'{drawn}<polyline class="line {line.kind}" points="{points}"/>'


def _names(plot: Plot) -> list[str]:
    """Names beside the lines' ends, moved apart where lines end close to each other."""
    ends = sorted(((_y(plot, line.points[-1][1]) + 4, line) for line in plot.lines), key=lambda end: end[0])
    found, last = [], float("-inf")
    for wanted, line in ends:
        last = max(wanted, last + _LINE_GAP)
        found.append(
            f'<text class="{line.kind}" x="{WIDTH - _RIGHT + 8}" y="{last:.1f}">{escape(line.name)}</text>'
        )
    return found
