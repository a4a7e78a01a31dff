"""Answers to what we sent, told apart by the last token of one inbox.

nats-py's own request gives each call a random token and a timer, waits out the whole timeout when the connection
drops, and reports a denied subject only to the error callback. Here a waiter fails as soon as either happens.
"""

import re
from collections.abc import Callable

from nats.aio.msg import Msg

from fairlead_bus.errors import BusError, ConnectionLostError, DeniedError

_DENIED = re.compile(r'permissions violation for publish to "([^"]*)"')


type AnswerHandler = Callable[[Msg | BusError], bool | None]
"""Takes the answer, or the reason why none will come; True where more is to come."""


class Replies:
    """Waiters for answers on one inbox."""

    def __init__(self, inbox: str) -> None:
        self.subject = f"{inbox}.*"
        self._prefix = f"{inbox}."
        self._skip = len(self._prefix)
        self._next = 0
        self._waiting: dict[str, tuple[str, AnswerHandler]] = {}

    def expect(self, subject: str, on_answer: AnswerHandler) -> str:
        """The reply subject to send along to `subject`; `on_answer` is called once, or as often as it asks for, unless forgotten."""
        self._next += 1
        token = str(self._next)
        self._waiting[token] = (subject, on_answer)
        return self._prefix + token

    def forget(self, reply: str) -> None:
        """Forgets an answer that nobody waits for any more."""
        self._waiting.pop(reply[self._skip :], None)

    def take(self, message: Msg) -> None:
        """Hands an answer to its waiter; an answer that comes too late is dropped."""
        token = message.subject[self._skip :]
        found = self._waiting.pop(token, None)
        if found is not None and found[1](message):
            self._waiting[token] = found

    def fail_all(self) -> None:
        """The connection is gone: no answer will come."""
        waiting, self._waiting = self._waiting, {}
        for _, on_answer in waiting.values():
            on_answer(ConnectionLostError("the connection dropped before an answer came"))

    def deny(self, text: str) -> bool:
        """Fails the waiters for a subject that the server denies; False where the text is of something else.

        The protocol has no code for it: the sentence is all there is, and nats-py hands it on in lower case.
        """
        match = _DENIED.search(text)
        if match is None:
            return False
        for token, (subject, on_answer) in list(self._waiting.items()):
            if subject.lower() == match[1]:
                del self._waiting[token]
                on_answer(DeniedError(subject))
        return True
