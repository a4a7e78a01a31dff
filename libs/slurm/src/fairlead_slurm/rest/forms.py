"""Numbers and states in either form that slurmrestd has had: plain up to v0.0.38, told with whether they are set since. Pure."""

import msgspec


class SetNumber(msgspec.Struct, frozen=True):
    """A number in the form of slurmrestd's data_parser, with whether it is set."""

    set: bool = False
    infinite: bool = False
    number: float = 0


type Number = int | SetNumber | None
type RestWords = str | list[str]


def number(told: Number) -> int | None:
    """The number told; None where it is not set, or unbounded."""
    if not isinstance(told, SetNumber):
        return told
    return int(told.number) if told.set and not told.infinite else None


def words(told: RestWords) -> list[str]:
    """The words told, as a list or separated by commas; empty for an empty text."""
    if isinstance(told, str):
        return told.split(",") if told else []
    return told
