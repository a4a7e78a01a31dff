"""Shares as bars, and how far clusters follow the order, in colours: what tables and the live view show."""

from collections.abc import Iterable, Iterator
from itertools import groupby

from fairlead_cli.client.phrases import (
    adherence_in_words,
    levels_left_in_words,
    preempted_in_words,
    promised_in_words,
    unanswered_in_words,
    untaken_in_words,
    unwell_in_words,
)
from fairlead_cli.client.plain_table import StyledText
from fairlead_cli.console import Screen
from fairlead_contracts.frontend.shipped import shipped_capabilities
from fairlead_contracts.messages.questions import Steering

BAR_WIDTH = 28
_FOLLOWED = {
    "exact": "follows the order exactly",
    "standing": "follows the order that stood when room came free",
    "close": "follows the order closely",
    "within-queue": "follows the order within each queue",
    "loose": "follows the order loosely",
    "tie-break": "takes the order as a tie-break",
}


def steering_lines(steering: Iterable[Steering], screen: Screen) -> Iterator[str]:
    """Lines on how far each cluster follows the order, and why it does not.

    None on one that follows it exactly and needs nobody's leave: nothing there can break, so nobody has to watch it.
    """
    for one in steering:
        why = f": {one.enforcement_why}" if one.enforcement_why else ""
        followed = _FOLLOWED.get(one.enforcement, one.enforcement)
        if (one.withheld or one.unheard) and one.enforcement in _FOLLOWED:
            followed = f"would {followed.replace('s ', ' ', 1)}"  # its verb is the first word
        if shipped_capabilities(one.frontend).needs_leave or one.enforcement != "exact":
            colour = "dim" if one.enforcement == "exact" else "yellow"
            yield screen.line(f"{one.cluster} ({one.frontend}) {followed}{why}", colour)
        troubles = (*unwell_in_words(one), untaken_in_words(one), unanswered_in_words(one))
        for trouble in filter(None, troubles):
            yield screen.line(f"{one.cluster}: {trouble}", "yellow")
        if one.promised:
            yield screen.line(f"{one.cluster}: {promised_in_words(one.promised)}.")
        for harm in filter(None, (levels_left_in_words(one), preempted_in_words(one))):
            yield screen.line(f"{one.cluster}: {harm}", "bold red")
        if one.adherence is not None:
            yield screen.line(f"{one.cluster}: {adherence_in_words(one.adherence)}")


def share_bar(share: float, entitlement: float, *, scale: float, width: int = BAR_WIDTH) -> list[StyledText]:
    """A bar of the share with a mark at the entitlement. `scale` is the share at the bar's full width."""
    filled = min(width, round(share / scale * width)) if scale else 0
    mark = min(width - 1, round(entitlement / scale * width)) if scale and entitlement else None
    bar = [StyledText("█", "cyan") if cell < filled else StyledText("·", "dim") for cell in range(width)]
    if mark is not None:
        bar[mark] = StyledText("┃", "mark") if mark < filled else StyledText("│", "bold")
    return [
        StyledText("".join(one.text for one in group), style)
        for style, group in groupby(bar, lambda one: one.style)
    ]
