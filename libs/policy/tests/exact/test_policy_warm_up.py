"""Arrays that numpy loads at their first use: told by a process of its own, as this one has long used them."""

from fairlead_testkit.processes.fresh_interpreter import printed_by

_LOADED = """
import sys
from fairlead_policy.exact.ranking import warm_up
before = "numpy.ma" in sys.modules
warm_up()
print(before, "numpy.ma" in sys.modules)
"""


def test_masked_arrays_are_loaded_before_the_first_reaction() -> None:
    """Masked arrays need no warming up any more once numpy loads them by itself, or not at all."""
    assert printed_by(_LOADED).split() == ["False", "True"]
