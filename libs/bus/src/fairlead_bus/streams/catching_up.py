"""Tells when a replay of the last values of a stream is complete."""

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import Stored
from fairlead_bus.errors import AnswerTimeoutError, JetStreamNotFoundError, ReplayBrokenError
from fairlead_bus.streams.feed import Feed

LOOK_SECONDS = 0.5
"""Seconds between two looks: the last message known may expire before it is delivered, and then nothing would tell that
all came."""


class CatchingUp:
    """The criterion: a feed's delivered sequence, read first, is not below the last one of its filter, read after.

    Args:
        bus: the connection.
        stream: the feed's stream.
        filter: the feed's pattern of subjects.
    """

    def __init__(self, bus: Bus, *, stream: str, filter: str) -> None:  # noqa: A002 - the word of NATS
        self._bus = bus
        self._stream = stream
        self._filter = filter

    async def until(self, feed: Feed) -> None:
        """Returns when everything that stood at some instant since the feed began is processed.

        The order of the two reads matters, and neither may come from a replica.

        Trap: on a busy machine an answer may take longer than anybody waits for one. It is asked for again; only the
        feed says that the replay is worth nothing any more.

        Raises:
            ReplayBrokenError: the feed broke, or the server knows it or its stream no more.
        """
        last: Stored | None = None
        while True:
            try:
                last = last or await self._last()
                if last is not None:
                    await feed.reach(last.seq, within=LOOK_SECONDS)
                delivered = (await feed.position()).delivered.stream_seq
                last = await self._last()
            except AnswerTimeoutError:
                self._bus.observer.count("mirror.late_answers")
                feed.check()
                continue
            feed.check()
            if last is None or last.seq <= delivered:
                break
        if last is not None:
            await feed.reach(last.seq)

    async def _last(self) -> Stored | None:
        try:
            return await self._bus.last(self._stream, self._filter)
        except JetStreamNotFoundError as error:
            # Whether it is missing for good is judged before each replay.
            raise ReplayBrokenError(f"the stream has gone: {error}") from error
