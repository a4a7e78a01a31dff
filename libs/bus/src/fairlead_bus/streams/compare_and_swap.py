"""Compare-and-swap on a subject, sure of its outcome."""

import secrets
from collections.abc import Callable

from fairlead_bus.connection.bus import Bus
from fairlead_bus.connection.jetstream import MSG_ID
from fairlead_bus.errors import FatalBusError, PublishUncertainError, WrongLastSequenceError

ATTEMPTS = 3


class SwapRefusedError(FatalBusError):
    """The subject's last message is neither the expected one nor ours."""


def new_msg_id(owner: str) -> str:
    """A Msg-Id that was never used. Trap: a reused one is acked and not stored."""
    return f"{owner}.{secrets.token_hex(8)}"


async def swap(
    bus: Bus,
    *,
    stream: str,
    subject: str,
    payload: bytes,
    expected: int,
    msg_id: str,
    is_ours: Callable[[str], bool] = lambda _: False,
) -> int:
    """Writes if the subject's last sequence is `expected` (0 for none); returns the new sequence.

    Trap: the server checks the sequence before the Msg-Id, so a repeat after a lost ack is refused instead of
    acknowledged as a duplicate. On any doubt the subject is read back from the leader: our own Msg-Id means success.
    The same message may be sent again as long as the expected one still stands: whichever copy comes second is
    refused.

    Args:
        expected: last sequence of the subject.
        msg_id: an id never used before.
        is_ours: tells the Msg-Id of an earlier write of the same owner whose outcome was never learnt; it becomes the
            expected one.

    Raises:
        SwapRefusedError: somebody else wrote.
        PublishUncertainError: the outcome could not be found out.
        DisconnectedError, ClosedError, DeniedError, PayloadTooLargeError, RefusedError: nothing was written now.
    """
    for _ in range(ATTEMPTS):
        try:
            ack = await bus.publish(subject, payload, msg_id=msg_id, expect_last=expected)
        except (PublishUncertainError, WrongLastSequenceError):
            bus.observer.count("swap.read_back")
        else:
            if not ack.duplicate:
                return ack.seq
        found = await bus.last(stream, subject)
        found_id = found.headers.get(MSG_ID, "") if found else ""
        if found and found_id == msg_id:
            return found.seq
        if found and is_ours(found_id):
            expected = found.seq
        elif (found.seq if found else 0) != expected:
            raise SwapRefusedError(f"{subject} was written by somebody else")
    raise PublishUncertainError(f"no ack for {subject} in {ATTEMPTS} attempts")
