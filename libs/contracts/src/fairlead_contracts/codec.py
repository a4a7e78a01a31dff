"""Encoding and decoding: MessagePack on the hot paths, JSON where people publish or read.

Each message class has a field `v`, its major schema version. Unknown fields are accepted: a newer minor release may
add some. An unknown major version is refused, loudly and before anything else is read from the message.
"""

from typing import ClassVar

import msgspec

from fairlead_contracts.errors import MalformedError, UnsupportedVersionError


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The root of everything that travels. Subclasses raise `VERSION` only when old readers must stop reading."""

    VERSION: ClassVar[int] = 1

    v: int = 1


class _Envelope(msgspec.Struct):
    v: object = None


_json_encoder = msgspec.json.Encoder()
_packer = msgspec.msgpack.Encoder()
_json_envelope = msgspec.json.Decoder(_Envelope)
_packed_envelope = msgspec.msgpack.Decoder(_Envelope)


def to_json(message: Message) -> bytes:
    """The message as JSON, for subjects that people publish to or read."""
    return _json_encoder.encode(message)


def to_packed(message: Message) -> bytes:
    """The message as MessagePack, for the hot paths. The same message gives the same bytes."""
    return _packer.encode(message)


class Codec[T]:
    """Decodes one message type, or a tagged union of them, from one encoding. Build it once: it is the fast part."""

    def __init__(self, kind: type[T] | object, name: str, *, packed: bool, version: int = 1) -> None:
        self._name = name
        self._version = version
        self._decoder: msgspec.msgpack.Decoder[T] | msgspec.json.Decoder[T]
        self._envelope: msgspec.msgpack.Decoder[_Envelope] | msgspec.json.Decoder[_Envelope]
        if packed:
            self._decoder = msgspec.msgpack.Decoder(kind)
            self._envelope = _packed_envelope
        else:
            self._decoder = msgspec.json.Decoder(kind)
            self._envelope = _json_envelope

    def decode(self, payload: bytes) -> T:
        """The message in the payload.

        Raises:
            UnsupportedVersionError: its major version is not the one that this release reads.
            MalformedError: anything else that keeps the payload from being read.
        """
        try:
            message = self._decoder.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self._refuse_other_version(payload)
            raise MalformedError(f"{self._name}: {error}") from error
        version = getattr(message, "v", None)
        if version != self._version:
            raise UnsupportedVersionError(self._name, version, self._version)
        return message

    def _refuse_other_version(self, payload: bytes) -> None:
        """A message of another major version may not even have our shape: say the true reason first."""
        try:
            found = self._envelope.decode(payload).v
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if found is not None and found != self._version:
            raise UnsupportedVersionError(self._name, found, self._version)
