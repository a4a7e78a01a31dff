"""What counts of Kueue's words on a shape, held against looking at all of them, and what it costs."""

from typing import ClassVar

from hypothesis import given
from hypothesis import strategies as st

from fairlead_kube.reflector import Key
from fairlead_watcher.objects.refused_flavors import RefusedFlavors, refused_flavors
from fairlead_watcher.objects.shape_verdicts import FlavorVerdict, ShapeVerdicts, WorkloadShape

REFUSED = refused_flavors("couldn't assign flavors to pod set main: flavor spot doesn't match node affinity")
SHAPES = [WorkloadShape("cq", shape) for shape in "ab"]
KEYS = [Key("team-a", name) for name in "uvwxyz"]
VERDICTS = st.builds(FlavorVerdict, at=st.integers(0, 3), refused=st.sampled_from([(), REFUSED]))
WORDS = st.none() | st.tuples(st.sampled_from(SHAPES), VERDICTS)


def newest_of(stand: dict[Key, tuple[WorkloadShape, FlavorVerdict]], shape: WorkloadShape) -> RefusedFlavors:
    said = [verdict for of, verdict in stand.values() if of == shape]
    newest = max((verdict.at for verdict in said), default=0)
    last = [verdict.refused for verdict in said if verdict.at == newest]
    return min(last, key=len, default=())


@given(st.lists(st.dictionaries(st.sampled_from(KEYS), WORDS, max_size=3), max_size=12))
def test_the_newest_and_mildest_of_all_that_stand_counts(
    news: list[dict[Key, tuple[WorkloadShape, FlavorVerdict] | None]],
) -> None:
    verdicts = ShapeVerdicts()
    stand: dict[Key, tuple[WorkloadShape, FlavorVerdict]] = {}
    last: dict[WorkloadShape, RefusedFlavors] = dict.fromkeys(SHAPES, ())
    for words in news:
        before = {shape: (verdicts.refused(shape), last[shape]) for shape in SHAPES}
        changed = verdicts.take(words)
        stand |= {key: found for key, found in words.items() if found is not None}
        stand = {key: found for key, found in stand.items() if words.get(key, found) is not None}
        last |= {shape: newest_of(stand, shape) for shape, _ in stand.values()}
        after = {shape: (newest_of(stand, shape), last[shape]) for shape in SHAPES}
        assert {one: (verdicts.refused(one), verdicts.refused_last(one)) for one in SHAPES} == after
        assert set(changed) == {shape for shape in SHAPES if before[shape] != after[shape]}


class CountedKey(Key):
    """A key that counts how often it is compared."""

    compared: ClassVar[int] = 0

    def __lt__(self, other: tuple[str, ...]) -> bool:
        type(self).compared += 1
        return super().__lt__(other)

    def __gt__(self, other: tuple[str, ...]) -> bool:
        type(self).compared += 1
        return super().__gt__(other)


def test_a_word_on_one_of_thousands_of_a_shape_looks_at_few_of_them() -> None:
    verdicts = ShapeVerdicts()
    said = (SHAPES[0], FlavorVerdict(1, ()))
    keys = [CountedKey("team-a", f"job-{number}") for number in range(4096)]
    verdicts.take(dict.fromkeys(keys, said))
    CountedKey.compared = 0
    verdicts.take({keys[9]: said})
    verdicts.take({keys[7]: None})
    assert 0 < CountedKey.compared < 100
