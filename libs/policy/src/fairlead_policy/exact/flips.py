"""Instants at which time alone changes the order: only a cap makes any, and they can be told in advance.

Below the cap all keys stand still. A job beyond it ages no more, so its key moves with the clock and a younger job
with a lower tag passes it. The first pair of jobs to change places stands side by side until then: whatever stood
between them would have to change places with one of the two first. So neighbours are all that has to be looked at.
"""

import numpy as np

from fairlead_contracts.base.instants import Micros
from fairlead_policy.exact.ranking import Ints, Multipliers, Rows, exactly_unaged, unaged
from fairlead_policy.rules.pool_rules import PoolRules


def first_flip(rows: Rows, rules: PoolRules, multipliers: Multipliers) -> Micros | None:
    """The first flip among rows in their order.

    Of neighbours j, k the later submitted k passes j just after `cap + submitted_k - (tag_j - tag_k) / rate`, and
    only where tag_j > tag_k. At that very instant the keys are equal and the submit instant keeps j in front.
    """
    if rules.cap is None or not rules.rate or len(rows) < 2:  # noqa: PLR2004 # a pair
        return None
    same_tag = (rows.use[1:] == rows.use[:-1]) & (rows.multiplier[1:] == rows.multiplier[:-1])
    if rows.offset is not None:
        same_tag &= rows.offset[1:] == rows.offset[:-1]
    ahead = np.flatnonzero(
        (rows.rank[1:] == rows.rank[:-1]) & (rows.submitted[1:] > rows.submitted[:-1]) & ~same_tag
    )
    candidates = ahead[_earliest(rows, ahead, rules, multipliers)] if len(ahead) else ahead
    instants = [_flip(rows, int(row), rules, multipliers) for row in candidates]
    return min((instant for instant in instants if instant is not None), default=None)


def _earliest(rows: Rows, ahead: Ints, rules: PoolRules, multipliers: Multipliers) -> Ints:
    """Positions in `ahead` of pairs that may flip first, by floats: a wide margin, exactness comes after."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        tags = unaged(rows, multipliers)
        difference = tags[ahead] - tags[ahead + 1]
        since = rows.submitted[ahead + 1] - rows.submitted.min()
        instants = since - difference / float(rules.rate)
        scale = np.abs(since) + (tags[ahead] + tags[ahead + 1]) / float(rules.rate)
        margin = 2.0**-40 * scale + 1.0
        # A pair of equal tags never flips, but only exact numbers can tell it from one that flips last of all.
        doubt = 2.0**-40 * (tags[ahead] + tags[ahead + 1])
        sure = difference > doubt
        limit = (instants + margin)[sure].min() if sure.any() else np.inf
        chosen: Ints = np.flatnonzero(~(difference < -doubt) & ~(instants - margin > limit))
    return chosen


def _flip(rows: Rows, row: int, rules: PoolRules, multipliers: Multipliers) -> Micros | None:
    tag, passing = (exactly_unaged(rows, number, multipliers) for number in (row, row + 1))
    if tag <= passing or rules.cap is None:
        return None
    instant = rules.cap + int(rows.submitted[row + 1]) - (tag - passing) / rules.rate
    return instant.numerator // instant.denominator + 1
