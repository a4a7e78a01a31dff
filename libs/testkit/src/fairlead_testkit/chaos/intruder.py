"""A hostile tenant: mutated messages over every subject that it may reach, sent as bytes, as no client library would.

Each message is made of its number alone, so that whatever broke something can be sent again. As a program it sends a
range of them at a steady rate: `python -m fairlead_testkit.chaos.intruder URL SEED-FILE FIRST COUNT A-SECOND`. It makes them all
first, says `ready`, and waits for a line: what it sends them beside has its cores to itself, but for what sending takes.
"""

import asyncio
import base64
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, Self
from urllib.parse import urlsplit

from fairlead_bus.connection.identity import public_key, sign
from fairlead_testkit.inputs.fuzz_inputs import NESTED, NUMBERS, WORDS

TENANT, NEIGHBOUR, CLUSTER = "mallory", "neighbour", "sim"
_BATCH = 10
"""Messages that are sent at once. Twenty milliseconds of CPU are in a hundred, all services and the server together: on two cores whoever comes
in the same moment waits for ten of them, also for a bare echo, and that tells of the cores."""
_QUESTIONS = ("answer", "explain", "queue", "tenants", "fit", "simulate", "none-such", "*", ">")
_SPOILS = (
    *("$KV.policy.document", "$KV.members.leader.admitter.sim", "$KV.routes.neighbour.n-1"),
    *(
        "$JS.API.STREAM.DELETE.submit",
        "$JS.API.STREAM.PURGE.answer",
        "$JS.API.CONSUMER.DELETE.submit.submit-sim",
    ),
    *("$JS.ACK.submit.submit-sim.1.5.5.1.0", "$JS.API.CONSUMER.MSG.NEXT.submit.submit-sim"),
    *(
        "fairlead.v1.answer.neighbour.n-1",
        "fairlead.v1.submit.sim.neighbour",
        "fairlead.v1.ask.queue.neighbour",
    ),
    *("fairlead.v1.state.sim.pool._.gpu", "fairlead.v1.state.sim.mark._.sync", "fairlead.v1.decision.gpu.0"),
    *(
        "fairlead.v1.event.neighbour.sim.n-1",
        "fairlead.v1.frontend.sim.delete",
        "fairlead.v1.dead.submit.sim.neighbour",
    ),
)
"""Subjects that the intruder would like to write to: by itself, and as those that an answer to it goes to."""
_HEADERS = (
    *("Nats-Rollup: all", "Nats-TTL: 1s", "Nats-Expected-Stream: state", "Nats-Expected-Last-Sequence: 9"),
    *(
        "Nats-Schedule: @every 1s",
        "Nats-Schedule-Target: fairlead.v1.submit.sim.neighbour",
        "Nats-Batch-Id: b",
    ),
    *(
        "Nats-Incr: +1",
        "KV-Operation: PURGE",
        "Fairlead-Op: DEL",
        "Fairlead-Restated: 1",
        "Fairlead-Stamp: 9.9",
    ),
    *(
        "Nats-Msg-Id: n-1",
        "Nats-Msg-Id: .*>",
        "Nats-Msg-Id: " + "i" * 300,
        "Status: 100",
        "Status: 503",
        "Status: 408",
    ),
    *(
        "Nats-Service-Error-Code: 500",
        "traceparent: " + "0" * 3000,
        "baggage: " + "b" * 9000,
        "no colon",
        ": no name",
    ),
    *(
        "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "Nats-Subject: $KV.policy.document",
    ),
)
_STATUS_LINES = (
    b"NATS/1.0",
    b"NATS/1.0",
    b"NATS/1.0 100 Idle",
    b"NATS/1.0 503",
    b"NATS/1.0 \xff\xfe",
    b"HTTP/1.1 200",
)


class Mutant(NamedTuple):
    """A message of the intruder's."""

    subject: bytes
    reply: bytes
    headers: bytes
    payload: bytes

    def wire(self) -> bytes:
        """The message as the protocol has it."""
        answer = self.reply + b" " if self.reply else b""
        whole = len(self.headers) + len(self.payload)
        if self.headers:
            line = b"HPUB %b %b%d %d\r\n" % (self.subject, answer, len(self.headers), whole)
        else:
            line = b"PUB %b %b%d\r\n" % (self.subject, answer, whole)
        return line + self.headers + self.payload + b"\r\n"


def a_mutant(number: int) -> Mutant:
    """The message of this number, always the same."""
    rng = random.Random(number)  # noqa: S311 # to be had again by its number
    return Mutant(_subject(rng), _reply(rng), _headers(rng), _payload(rng, number))


def _subject(rng: random.Random) -> bytes:
    [kind] = rng.choices(("submit", "ask", "spoil", "noise"), (12, 5, 1, 2))
    match kind:
        case "submit":
            cluster = rng.choice((CLUSTER, CLUSTER, CLUSTER, "any", "none-such", "*"))
            return f"fairlead.v1.submit.{cluster}.{TENANT}".encode()
        case "ask":
            return f"fairlead.v1.ask.{rng.choice(_QUESTIONS)}.{TENANT}".encode()
        case "spoil":
            return rng.choice(_SPOILS).encode()
        case _:
            noise = bytes(rng.choice(b"abc%\xff\x0b\x0c\x80.*>_") for _ in range(rng.randrange(1, 40)))
            return rng.choice((b"fairlead.v1.submit.%b.mallory", b"fairlead.v1.ask.%b.mallory")) % noise


def _reply(rng: random.Random) -> bytes:
    choices: tuple[Callable[[], str], ...] = (
        str,
        lambda: "_INBOX_mine.1",
        lambda: rng.choice(_SPOILS),
        lambda: "_R_." + "x" * rng.randrange(1, 30),
        lambda: f"_INBOX_{rng.choice(('scorer', 'admitter', 'operator'))}.{rng.randrange(100)}",
    )
    return rng.choice(choices)().encode()


def _headers(rng: random.Random) -> bytes:
    if rng.randrange(2):
        return b""
    lines = [rng.choice(_STATUS_LINES)]
    lines += [rng.choice(_HEADERS).encode() for _ in range(rng.randrange(4))]
    if not rng.randrange(8):
        lines.append(bytes(rng.choice(b"ab:\xff\x00 -") for _ in range(rng.randrange(60))))
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _payload(rng: random.Random, number: int) -> bytes:
    kinds = ("nothing", "noise", "large", "deep", "broken", "twice", "body")
    [kind] = rng.choices(kinds, (50, 50, 1, 50, 50, 50, 350))
    match kind:
        case "nothing":
            return b""
        case "noise":
            return rng.randbytes(rng.randrange(200))
        case "large":
            return b'{"id": "%b"}' % (b"x" * rng.choice((100_000, 262_145, 900_000)))
        case "deep":
            depth = rng.choice((10, 400, 3000))
            return b'{"demand": ' + b"[" * depth + b"]" * rng.choice((depth, 0)) + b"}"
    text = json.dumps(_body(rng, number)).encode(errors="surrogatepass")
    if kind == "broken":
        at = rng.randrange(len(text))
        return text[:at] + rng.randbytes(rng.randrange(1, 4)) + text[at + rng.randrange(3) :]
    return text.replace(b"{", b'{"id": "twice", ', 1) if kind == "twice" else text


def _right_bodies(number: int) -> list[dict[str, object]]:
    one: dict[str, object] = {"id": f"m-{number % 5000}", "demand": {"nvidia.com/gpu": 1}, "run_seconds": 0.2}
    return [
        one,
        {
            "demand": {"nvidia.com/gpu": "1", "cpu": "500m"},
            "pods": 2,
            "class": "urgent",
            "labels": {"a": "b"},
        },
        {"id": f"m-{number % 500}", "cancel": True},
        {"id": "n-1", "cancel": True},
        {"id": "n-1", "tenant": NEIGHBOUR, "demand": {"nvidia.com/gpu": 1}, "template": {"image": "x"}},
        {"v": 1, "pool": "gpu", "limit": 10, "tenant": NEIGHBOUR, "job": "n-1", "id": "n-1"},
    ]


def _body(rng: random.Random, number: int) -> dict[str, object]:
    """A submission or a question, in which a few things are not as they should be."""
    body = dict(rng.choice(_right_bodies(number)))
    for _ in range(rng.randrange(3)):
        wrong = rng.choice((*NUMBERS, *WORDS, *NESTED, [[[[]]]] * 50, {"k" * 300: 1}))
        body[rng.choice((*body, "v", "id", "tenant", "priority", "limit", "queue", ""))] = wrong
    return body


class Intruder:
    """A connection of the tenant's own user."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._pongs = 0
        self.denied = 0
        """Messages that the server did not let through, and said so."""

    @classmethod
    async def connect(cls, url: str, seed: str) -> Self:
        """Connects and is let in, or raises OSError."""
        address = urlsplit(url)
        reader, writer = await asyncio.open_connection(address.hostname, address.port, limit=2**20)
        nonce = json.loads((await reader.readline()).removeprefix(b"INFO "))["nonce"]
        signature = base64.urlsafe_b64encode(sign(seed, nonce.encode())).rstrip(b"=").decode()
        options = {
            "verbose": False,
            "headers": True,
            "no_responders": True,
            "nkey": public_key(seed),
            "sig": signature,
        }
        writer.write(b"CONNECT " + json.dumps(options).encode() + b"\r\n")
        made = cls(reader, writer)
        await made.taken()
        return made

    def send(self, wire: bytes) -> None:
        """Puts a message on its way, as the protocol has it."""
        self._writer.write(wire)

    async def taken(self) -> None:
        """Returns once the server has read all that was sent.

        Raises:
            ConnectionError: the server hung up.
        """
        self._writer.write(b"PING\r\n")
        while (said := await self._reader.readline()) != b"PONG\r\n":
            if not said:
                raise ConnectionResetError("the server hung up")
            self.denied += said.startswith(b"-ERR")

    def close(self) -> None:
        """Hang up."""
        self._writer.close()


async def intrude(url: str, seed: str, wires: Sequence[bytes], a_second: float) -> int:
    """Sends the forbidden messages at this rate; reconnects after a disconnect. Returns how many the server said that it denied."""
    denied, begun = 0, time.monotonic()
    intruder = await Intruder.connect(url, seed)
    for first in range(0, len(wires), _BATCH):
        await asyncio.sleep(max(0.0, begun + first / a_second - time.monotonic()))
        try:
            for wire in wires[first : first + _BATCH]:
                intruder.send(wire)
            await intruder.taken()
        except ConnectionError:
            denied += intruder.denied
            intruder = await Intruder.connect(url, seed)
    intruder.close()
    return denied + intruder.denied


def main() -> None:
    """Runs as a program; prints how many the server said that it denied, and the seconds that sending took."""
    url, seed_file, first, count, a_second = sys.argv[1:]
    wires = [a_mutant(number).wire() for number in range(int(first), int(first) + int(count))]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    begun = time.monotonic()
    denied = asyncio.run(intrude(url, Path(seed_file).read_text().strip(), wires, float(a_second)))
    sys.stdout.write(f"{denied} {time.monotonic() - begun}\n")


if __name__ == "__main__":
    main()
