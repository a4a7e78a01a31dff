from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_policy.levels.bands import class_bands, narrow_bands
from fairlead_policy.levels.plan import Band
from fairlead_testkit.inputs.cases import cases

CLASSES = ["urgent", "approved", "normal"]


def test_without_values_of_the_cluster_each_class_begins_where_the_one_below_ends() -> None:
    bands = class_bands(CLASSES, {}, width=1000)
    assert bands == {
        "urgent": Band(default=2002, lowest=2003, highest=3002),
        "approved": Band(default=1001, lowest=1002, highest=2001),
        "normal": Band(default=0, lowest=1, highest=1000),
    }


def test_a_class_that_the_cluster_knows_begins_at_its_value() -> None:
    bands = class_bands(CLASSES, {"urgent": 100_000, "normal": -50}, width=5_000)
    assert bands["urgent"] == Band(default=100_000, lowest=100_001, highest=105_000)
    assert bands["approved"].default == -50 + 5_001
    assert bands["normal"] == Band(default=-50, lowest=-49, highest=4_950)


def test_a_class_that_the_cluster_does_not_know_fits_between_two_that_it_knows() -> None:
    bands = class_bands(CLASSES, {"urgent": 100_000}, width=1_000_000)
    assert [bands[name].default for name in CLASSES] == [100_000, 50_000, 0]
    assert bands["normal"].highest == 49_999
    assert bands["approved"].highest == 99_999
    assert not narrow_bands(CLASSES, {"urgent": 100_000}, width=1_000_000)


def test_values_that_stand_close_or_the_wrong_way_round_are_told() -> None:
    (close,) = narrow_bands(CLASSES, {"urgent": 10_000, "approved": 100, "normal": 0}, width=1_000_000)
    assert (close.lower, close.upper, close.room) == ("normal", "approved", 99)
    (inverted,) = narrow_bands(CLASSES, {"urgent": -1, "approved": 5_000, "normal": 0}, width=5_000)
    assert (inverted.lower, inverted.upper) == ("approved", "urgent")
    assert inverted.room < 0
    assert not narrow_bands(CLASSES, {"urgent": 1_000_000, "approved": 10_000}, width=5_000)


@given(
    st.dictionaries(st.sampled_from(CLASSES), st.integers(-(10**9), 10**9)), st.integers(1_000, 10_000_000)
)
@settings(max_examples=cases())
def test_no_level_of_a_band_reaches_the_floor_of_a_higher_class(values: dict[str, int], width: int) -> None:
    bands = class_bands(CLASSES, values, width=width)
    for upper, lower in pairwise(CLASSES):
        assert bands[lower].highest < bands[upper].default
        assert bands[lower].lowest > bands[lower].default
    if not narrow_bands(CLASSES, values, width=width):
        floors = [bands[name].default for name in CLASSES]
        assert floors == sorted(floors, reverse=True)
