"""Number of random cases that a property is tried on: 30 in every run, twenty thousand by HYPOTHESIS_PROFILE=deep.

For properties that are the reason to trust the arithmetic; others keep to the smaller numbers of the profiles. CI tries
the same cases in every run, so more of them there cost each run and find nothing new; `make faults` shows that these
find what is known to go wrong, and the deep form looks for what is not.
"""

from hypothesis import settings

CASES = 30
DEEP_CASES = 20_000


def cases(share: float = 1) -> int:
    """The number of cases under the profile that is loaded.

    Args:
        share: part of that number, for a property whose single case is heavy; of a state machine that checks each of its
            steps, one by their number: each counts as a case.
    """
    whole = DEEP_CASES if settings.get_current_profile_name() == "deep" else CASES
    return max(1, round(whole * share))
