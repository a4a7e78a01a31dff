"""How the orders are told apart on the page: by shape and dash, not by colour alone."""

from collections.abc import Sequence
from html import escape

ORDER_CLASSES = ("fairlead", "fifo", "priority")
"""CSS classes of the runs, in the order in which a report lists them: ours first."""
GLYPHS = {"fairlead": "●", "fifo": "■", "priority": "▲"}
_STROKES = {"fairlead": "━━", "fifo": "╍╍", "priority": "┅┅"}


def legend(titles: Sequence[str], *, entitled: bool = True, lines: bool = False) -> str:
    """What the marks mean, or where there are `lines` the strokes, as HTML beside the plots."""
    marks = _STROKES if lines else GLYPHS
    items = "".join(
        f'<span class="key"><i class="glyph {kind}">{marks[kind]}</i>{escape(title)}</span>'
        for kind, title in zip(ORDER_CLASSES, titles, strict=False)
    )
    dots = '<span class="key"><i class="glyph entitled">⋯</i>entitlement</span>' if entitled else ""
    return f'<p class="legend">{items}{dots}</p>'
