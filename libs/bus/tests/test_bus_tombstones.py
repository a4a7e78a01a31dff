"""Deletes are remembered in little memory, exactly, and the oldest go first."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_bus.streams.tombstones import Tombstone, Tombstones

GRAVES = st.builds(
    Tombstone,
    stamp=st.none() | st.tuples(st.integers(-(2**70), 2**70), st.integers()),
    seq=st.integers(0, 2**63),
)


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | GRAVES)), st.integers(1, 6))
def test_the_last_ones_are_known_as_they_were_told(
    deeds: list[tuple[str, Tombstone | None]], most: int
) -> None:
    tombstones, told, dug = Tombstones(most), dict[str, Tombstone](), list[str]()
    for subject, tombstone in deeds:
        told.pop(subject, None)
        if tombstone is None:
            tombstones.forget(subject)
        else:
            told[subject] = tombstone
            tombstones.bury(subject, tombstone)
            dug = [*(name for name in dug if name != subject), subject]
        known = {name: tombstones.of(name) for name in told if name in tombstones}
        assert all(known[name] == told[name] for name in known)
        assert known.keys() >= told.keys() & dug[-max(1, most // 2) :]
        assert len(tombstones) == len(known) <= max(2, most)
        assert bool(tombstones) == bool(known)
    tombstones.clear()
    assert not tombstones
