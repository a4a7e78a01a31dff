"""Talking to NATS for one command: who we are there, and what a failure means to a person."""

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager

import msgspec

from fairlead_bus import (
    AnswerTimeoutError,
    Bus,
    BusError,
    ConnectFailedError,
    ConnectionSettings,
    JetStreamNotFoundError,
    MisconfiguredError,
    NobodyAnswersError,
    NoStreamError,
    PublishUncertainError,
    RemoteError,
    connect,
)
from fairlead_bus.errors import NO_ACK_HINT
from fairlead_cli.client.instance import find_url
from fairlead_cli.errors import CommandError, InputError, NoScorerAnswersError, NotRunningError, leaves
from fairlead_contracts import subjects
from fairlead_contracts.base.codec import Codec, Message, to_json
from fairlead_contracts.base.errors import ContractError
from fairlead_contracts.messages.questions import PROBLEM

CONNECT_SECONDS = 3.0
ANSWER_SECONDS = (3.0, 2.0)
"""Seconds that each try of a question waits for an answer. A scorer that is stopped or cut off stays in the
group that questions are shared by until the server notices: a second try mostly reaches another one. The
first leaves time for owners of shards that are silent."""
_NOT_YET = 503
"""The code with which a scorer answers that has not read all state yet, or knows no policy."""
_TOLD = (CommandError, BusError, OSError)
"""Kinds of failure of which a person is told the first one found in a group; the last is a full disk, or a
pipe nobody reads."""
_STORED = "It may have taken effect all the same: look before you repeat it."
_PREFIX = "FAIRLEAD_NATS_"
_CREDENTIALS = ("user", "password", "token", "creds", "nkey_seed", "tls_ca", "tls_cert", "tls_key")


def connection_settings(url: str, environ: Mapping[str, str]) -> ConnectionSettings:
    """The address with the credentials that the environment gives, under the same names as for the services."""
    given = {name: environ.get(_PREFIX + name.upper()) for name in _CREDENTIALS}
    plain = ConnectionSettings(url=url, connect_timeout_seconds=CONNECT_SECONDS)
    return msgspec.structs.replace(plain, **given)


def server_of(nats: str | None) -> str:
    """The address that `connected` speaks to, without its password.

    Raises:
        NotRunningError: none was stated, and no instance runs.
    """
    return str(connection_settings(find_url(nats, os.environ), os.environ).redacted()["url"])


@asynccontextmanager
async def connected(nats: str | None) -> AsyncIterator[Bus]:
    """A connection to the stated address, or to the running instance.

    Raises:
        InputError: the address, or a file of ours, is none.
        NotRunningError: nobody is there.
    """
    url = find_url(nats, os.environ)
    settings = connection_settings(url, os.environ)
    try:
        async with connect(settings, name="cli") as bus:
            yield bus
    except MisconfiguredError as error:
        raise InputError(
            str(error),
            hint="--nats URL or FAIRLEAD_NATS_URL says where NATS is, FAIRLEAD_NATS_* who we are there.",
        ) from error
    except ConnectFailedError as error:
        raise NotRunningError(
            str(error),
            hint="Is it up, and does it know the credentials in FAIRLEAD_NATS_*? `fairlead up` starts one; --nats URL or "
            "FAIRLEAD_NATS_URL names another.",
        ) from error


async def ask[T: Message](
    bus: Bus, question: subjects.QuestionKind, message: Message, codec: Codec[T], *, tenant: str | None = None
) -> T:
    """Ask the scorers and read the answer.

    Raises:
        NoScorerAnswersError: no scorer listens, or none answers in time.
        CommandError: the question was refused; says which field and why.
    """
    try:
        payload = await _answer(bus, subjects.ask(question, tenant), to_json(message))
    except NobodyAnswersError as error:
        raise NoScorerAnswersError(
            "NATS is there, but no scorer answers",
            hint="Just started? `fairlead up` says when they answer; on a busy machine that takes a minute or two. "
            "If it said so before, its scorers are down: their logs say why.",
        ) from error
    except AnswerTimeoutError as error:
        raise NoScorerAnswersError(
            f"no scorer answered within {sum(ANSWER_SECONDS):g} s",
            hint="It may still be starting: try again.",
        ) from error
    except RemoteError as error:
        if error.code == _NOT_YET:
            raise NoScorerAnswersError(
                error.text,
                hint="It mostly takes some seconds: try again. After that, the scorer's log says why.",
            ) from error
        raise CommandError(_refusal(error)) from error
    try:
        return codec.decode(payload)
    except ContractError as error:
        raise CommandError(
            f"what a scorer answered cannot be read: {error}",
            hint="Is it of another release than this command?",
        ) from error


async def _answer(bus: Bus, subject: str, question: bytes) -> bytes:
    *first, last = ANSWER_SECONDS
    for seconds in first:
        try:
            return await bus.request(subject, question, timeout=seconds)
        except AnswerTimeoutError:
            continue
    return await bus.request(subject, question, timeout=last)


def _refusal(error: RemoteError) -> str:
    try:
        problem = PROBLEM.decode(error.payload)
    except ContractError:
        return f"the question was refused: {error.text}"
    return f"{problem.field} {problem.value} {problem.reason}"


def run[T](main: Coroutine[object, object, T]) -> T:
    """Run a command's coroutine to its end; of a group of failures, the first expected one is told.

    Raises:
        CommandError: whatever a person should hear.
        OSError: a result cannot be written.
    """
    try:
        return asyncio.run(main)
    except BaseExceptionGroup as group:
        told = next((leaf for kind in _TOLD for leaf in leaves(group) if isinstance(leaf, kind)), None)
        if isinstance(told, CommandError | OSError):
            raise told from group
        if told is None:
            raise
        raise _in_words(told) from group
    except BusError as error:
        raise _in_words(error) from error


def _in_words(error: BusError) -> CommandError:
    if isinstance(error, JetStreamNotFoundError | NoStreamError):
        return NotRunningError(
            "NATS is there, but Fairlead's streams are not",
            hint="`fairlead up` makes them on this machine, `fairlead nats provision CLUSTER...` on a server of yours.",
        )
    uncertain = isinstance(error, PublishUncertainError)
    return CommandError(f"NATS: {error}", hint=f"{_STORED} {NO_ACK_HINT}" if uncertain else "")
