"""Deletes are remembered in little memory, exactly, and the oldest go first."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_bus.streams.tombstones import Grave, Graves

GRAVES = st.builds(
    Grave, stamp=st.none() | st.tuples(st.integers(-(2**70), 2**70), st.integers()), seq=st.integers(0, 2**63)
)


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.none() | GRAVES)), st.integers(1, 6))
def test_the_last_ones_are_known_as_they_were_told(deeds: list[tuple[str, Grave | None]], most: int) -> None:
    graves, told, dug = Graves(most), dict[str, Grave](), list[str]()
    for subject, grave in deeds:
        told.pop(subject, None)
        if grave is None:
            graves.forget(subject)
        else:
            told[subject] = grave
            graves.dig(subject, grave)
            dug = [*(name for name in dug if name != subject), subject]
        known = {name: graves.of(name) for name in told if name in graves}
        assert all(known[name] == told[name] for name in known)
        assert known.keys() >= told.keys() & dug[-max(1, most // 2) :]
        assert len(graves) == len(known) <= max(2, most)
        assert bool(graves) == bool(known)
    graves.clear()
    assert not graves
