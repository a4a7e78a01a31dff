"""Encoding and decoding: MessagePack on the hot paths, JSON where people publish or read.

Each message class has a field `v`, its major schema version. Unknown fields are accepted: a newer minor release may
add some. An unknown major version is refused, loudly, and named as the reason whatever else is wrong with the message.
"""

from typing import ClassVar, get_args

import msgspec

from fairlead_contracts.base.errors import MalformedError, UnsupportedVersionError, why_unread


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The root of everything that travels.

    A subclass raises `VERSION`, and the default of `v` with it, only when old readers must stop reading.
    """

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
    """Decodes one message type, or a tagged union of them, from one encoding. Build it once: it is the fast part.

    Args:
        kind: a subclass of Message, or a union of several of one schema version.
        name: the message's name in errors.
        packed: whether it travels as MessagePack; else as JSON.
    """

    def __init__(self, kind: type[T] | object, name: str, *, packed: bool) -> None:
        self.kind = kind
        self.name = name
        self.packed = packed
        self._version = _version_of(kind)
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
            raise MalformedError(f"{self.name}: {why_unread(error)}") from error
        version = getattr(message, "v", None)
        if version != self._version:
            raise UnsupportedVersionError(self.name, version, self._version)
        return message

    def _refuse_other_version(self, payload: bytes) -> None:
        """A message of another major version may not even have our shape: say the true reason first."""
        try:
            found = self._envelope.decode(payload).v
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        if isinstance(found, int) and found != self._version:
            raise UnsupportedVersionError(self.name, found, self._version)


def _version_of(kind: object) -> int:
    """The one schema version of a message type or of all the members of a union."""
    if kind is bytes:
        return Message.VERSION  # a codec that hands the payload on unread has no schema of its own
    versions = set()
    for member in get_args(kind) or (kind,):
        default = next(field.default for field in msgspec.structs.fields(member) if field.name == "v")
        versions |= {default, member.VERSION}
    if len(versions) != 1:
        raise TypeError(f"{kind} mixes schema versions, or a class differs from its own default: {versions}")
    return int(versions.pop())
