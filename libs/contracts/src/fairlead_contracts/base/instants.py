"""Instants: integer microseconds since the Unix epoch inside, RFC 3339 where people read.

Integers keep the aging term exact: two instants compare, and differ, without rounding.
"""

from datetime import UTC, datetime
from typing import Annotated

import msgspec

type Micros = int
"""Microseconds since the Unix epoch (an instant), or a number of microseconds (a duration)."""

type Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""An instant in a message that people read: RFC 3339 with its offset; one without an offset is refused."""

SECOND: Micros = 1_000_000
MINUTE: Micros = 60 * SECOND
HOUR: Micros = 3600 * SECOND
DAY: Micros = 24 * HOUR
FIRST_NAMED: Micros = -62_135_596_800 * SECOND
LAST_NAMED: Micros = 253_402_300_740 * SECOND
"""The first minute of the year 1 and the last one of the year 9999: calendars here name no instant beyond
them."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_seconds(seconds: float) -> Micros:
    """The instant or duration of `seconds`, rounded to the microsecond."""
    return round(seconds * SECOND)


def to_seconds(instant: Micros) -> float:
    """The instant or duration in seconds."""
    return instant / SECOND


def to_datetime(instant: Micros) -> datetime:
    """The instant as an aware datetime in UTC; one that no calendar names is the nearest that they do."""
    seconds, micros = divmod(min(max(instant, FIRST_NAMED), LAST_NAMED), SECOND)
    return datetime.fromtimestamp(seconds, UTC).replace(microsecond=micros)


def from_datetime(moment: datetime) -> Micros:
    """The instant of an aware datetime."""
    delta = moment - _EPOCH
    return (delta.days * 86_400 + delta.seconds) * SECOND + delta.microseconds
