"""The operators' words on writing levels, as the policy bucket has them: what holds now, and what was said before."""

from collections.abc import Collection, Iterator, Sequence

from fairlead_bus import Bucket, Bus, Stored, is_deletion
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.base.instants import to_datetime
from fairlead_contracts.base.tokens import NO_NAME, decode_key
from fairlead_contracts.messages.control import CONTROL, STRICTNESS, Control, Mode

_KEYS = "control."
_SUBJECTS = subjects.kv_subject(topology.POLICY, _KEYS)


class Controls(dict[str | None, Control]):
    """The last word on each pool; of None on all of them."""

    def mode_of(self, pool: str) -> Mode:
        """The strictest that holds for a pool."""
        words = (self.get(name) for name in (pool, None))
        return max(
            (word.mode for word in words if word is not None), key=STRICTNESS.index, default=Mode.ACTIVE
        )

    def held_back(self, pools: Collection[str] | None = None) -> Iterator[str]:
        """The pools of these (None: all) where nothing is written now, by whose word, and what ends that."""
        for pool, word in self.items():
            if word.mode is Mode.ACTIVE or not (pools is None or pool is None or pool in pools):
                continue
            named, resume = ("all pools are", "") if pool is None else (f"pool {pool} is", f" {pool}")
            yield f"{named} {word.in_words()}; `fairlead resume{resume}` ends that"


async def said(bus: Bus) -> list[tuple[str | None, Stored]]:
    """The operators' words that the bucket keeps, oldest first, each with its pool; None for all pools."""
    found: list[tuple[str | None, Stored]] = []
    for one in await Bucket(bus, topology.POLICY).history(f"{_KEYS}>"):
        key = one.subject.removeprefix(_SUBJECTS)
        found.append((None if key == NO_NAME else decode_key(key), one))
    return found


async def control_words(bus: Bus) -> Controls:
    """The words that hold."""
    return standing(await said(bus))


def standing(words: Sequence[tuple[str | None, Stored]]) -> Controls:
    """The words that stand: the last one on each pool, of these, the oldest first."""
    found = Controls()
    for pool, one in words:
        if is_deletion(one.headers):
            found.pop(pool, None)
        else:
            found[pool] = read_control(one)
    return found


def read_control(stored: Stored) -> Control:
    """The word; one that this release cannot read pauses, as it does for the services."""
    try:
        return CONTROL.decode(stored.payload)
    except ContractError:
        return Control(mode=Mode.PAUSED, at=to_datetime(stored.at), why="in a word that cannot be read")
