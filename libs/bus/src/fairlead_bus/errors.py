"""The errors of this library, under one root.

Whether a retry of the same call can succeed is visible in the type: `RetryableBusError` or `FatalBusError`.
"""

import asyncio


class BusError(Exception):
    """Anything that goes wrong between a service and NATS."""


class RetryableBusError(BusError):
    """The same call may succeed later."""


class FatalBusError(BusError):
    """The same call cannot succeed, however often it is made."""


class DisconnectedError(RetryableBusError):
    """The connection is down right now; nothing was sent, and nothing is kept to be sent later."""

    def __init__(self) -> None:
        super().__init__("the connection to NATS is down")


class ConnectionLostError(RetryableBusError):
    """The connection went down after the message was sent and before it was answered."""


class AnswerTimeoutError(RetryableBusError):
    """An answer did not come in time; the question may have been heard all the same."""


class NobodyAnswersError(RetryableBusError):
    """The subject has no listener."""


class NoStreamError(RetryableBusError):
    """No stream takes the subject: an unknown name in it, or JetStream is still starting."""


class UnavailableError(RetryableBusError):
    """JetStream cannot serve the call just now."""


class PublishUncertainError(RetryableBusError):
    """No ack came: the message may be stored, may arrive later, or may be lost."""


class ReplayBrokenError(RetryableBusError):
    """A replay met a gap, went silent or lost its connection; whatever it showed must be built again."""


class ClosedError(FatalBusError):
    """The connection is closed for good."""


class ConnectFailedError(FatalBusError):
    """No server let us in within the time given."""


class MisconfiguredError(ConnectFailedError):
    """A URL, or a file of keys or certificates, that we were given cannot be used; no server was asked."""


class InvalidCredentialsError(FatalBusError):
    """The seed, or the credentials file, that we were given cannot be one."""


class DeniedError(FatalBusError):
    """The server denies a subject to our user: it has another one's key, or grants of an older release."""

    def __init__(self, subject: str) -> None:
        super().__init__(
            f"our user may not publish to {subject}: whose key does FAIRLEAD_NATS_* name? Each service of each cluster has its "
            "own, and so has each person. After an upgrade `fairlead nats config` grants anew, `fairlead nats check` tries it"
        )


class PayloadTooLargeError(FatalBusError):
    """Payload and headers together exceed what the server takes."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the message has {size} bytes; the server takes {limit}")
        self.size = size
        self.limit = limit


class InvalidMessageError(FatalBusError):
    """The subject or a header cannot be sent."""


class JetStreamRefusedError(FatalBusError):
    """JetStream refused the call; carries its codes."""

    def __init__(self, code: int, err_code: int, description: str) -> None:
        super().__init__(f"{description} (code {code}, error {err_code})")
        self.code = code
        self.err_code = err_code
        self.description = description


class JetStreamNotFoundError(JetStreamRefusedError):
    """The stream, consumer or message does not exist."""


class NotProvisionedError(JetStreamNotFoundError):
    """A stream, bucket or durable that Fairlead stands on is missing; says the command that makes it."""

    def __init__(self, what: str, cluster: str | None = None) -> None:
        super().__init__(404, 0, f"this NATS server has no {what}")
        self.args = (
            f"this NATS server has no {what}: `fairlead nats provision {cluster or 'CLUSTER...'}` makes it",
        )


class WrongLastSequenceError(JetStreamRefusedError):
    """A compare-and-swap was refused: the subject's last sequence is not the expected one."""


class WrongRevisionError(WrongLastSequenceError):
    """The key's revision is not the expected one."""


class KeyExistsError(WrongLastSequenceError):
    """The key has a value already."""


class LostOwnershipError(FatalBusError):
    """The owned subject was written by somebody else: this owner's epoch is over."""


class RemoteError(FatalBusError):
    """The other side answered a question with an error; `payload` may explain it in its own schema."""

    def __init__(self, code: int, text: str, payload: bytes) -> None:
        super().__init__(f"{text} (code {code})")
        self.code = code
        self.text = text
        self.payload = payload


NO_ACK_HINT = (
    "Where that goes on, NATS' log says why: a full disk (`no space left on device`: make room, then restart NATS), or no "
    "leader (two of three servers have to run)."
)
"""The next step of a person whom NATS acknowledges nothing. Trap: a server whose disk is full says so in its log and its
/healthz alone; it answers all else as before."""


def not_kept(what: str, error: BusError) -> str:
    """The trouble that NATS did not take a write, in words, and what to do where it goes on."""
    told = f"NATS does not keep {what}: {error}"
    return f"{told}. {NO_ACK_HINT}" if isinstance(error, PublishUncertainError) else told


class Rejected(Exception):  # noqa: N818 - a handler's verdict on a question, not a failure of ours
    """Raised by a handler of questions: the asker gets a `RemoteError` with the same code, text and payload."""

    def __init__(self, code: int, text: str, payload: bytes = b"") -> None:
        super().__init__(text)
        self.code = code
        self.text = text
        self.payload = payload


class PoisonError(Exception):
    """Raised by a handler of deliveries: the message can never be handled, put it aside now."""


class NotYetError(Exception):
    """Raised by a handler of deliveries: not now, for no fault of the message. It does not count as an attempt.

    `seconds`: after how long to handle it again. `sooner`: a future; once it is done, the message is handled again
    before that. It is cancelled where nobody waits for it any more.
    """

    def __init__(self, text: str, *, seconds: float, sooner: asyncio.Future[None] | None = None) -> None:
        super().__init__(text)
        self.seconds = seconds
        self.sooner = sooner
