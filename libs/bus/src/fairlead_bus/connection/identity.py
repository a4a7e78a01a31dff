"""NKeys: making them, and the public key of whoever holds a seed or a credentials file."""

import base64
import binascii
import secrets
from enum import IntEnum

import msgspec
import nkeys  # type: ignore[import-untyped] # it ships no types; nats-py's extra `nkeys` installs it

from fairlead_bus.errors import InvalidCredentialsError

_SEED_BYTES = 32


class KeyKind(IntEnum):
    """The role that a key is for; NATS writes it into the first letter: O, A, U."""

    OPERATOR = nkeys.PREFIX_BYTE_OPERATOR
    ACCOUNT = nkeys.PREFIX_BYTE_ACCOUNT
    USER = nkeys.PREFIX_BYTE_USER


def new_seed(kind: KeyKind) -> str:
    """A new key's seed, which is the secret."""
    made: bytes = nkeys.encode_seed(secrets.token_bytes(_SEED_BYTES), int(kind))
    return made.decode("ascii")


def public_key(seed: str) -> str:
    """The public key of a seed.

    Raises:
        InvalidCredentialsError: the text is no seed.
    """
    # nkeys leaves the padding of account seeds off and wants none of a public key: 35 bytes are 56 letters exactly.
    found: bytes = _pair(seed).public_key
    return found.decode("ascii")


def sign(seed: str, content: bytes) -> bytes:
    """The signature of the seed's holder.

    Raises:
        InvalidCredentialsError: the text is no seed.
    """
    signature: bytes = _pair(seed).sign(content)
    return signature


class _Claims(msgspec.Struct):
    sub: str


def user_of_creds(creds: str) -> str:
    """The user's public key in the text of a credentials file. The signature is not checked: the server does that.

    Raises:
        InvalidCredentialsError: the text holds no user JWT.
    """
    lines = [line.strip() for line in creds.splitlines()]
    begins = [number for number, line in enumerate(lines) if "BEGIN NATS USER JWT" in line]
    try:
        body = lines[begins[0] + 1].split(".")[1]
        return msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=_Claims).sub
    except (IndexError, binascii.Error, msgspec.MsgspecError) as error:
        raise InvalidCredentialsError("the credentials file holds no user JWT") from error


def _pair(seed: str) -> nkeys.KeyPair:
    try:
        return nkeys.from_seed(seed.encode("ascii"))
    except (nkeys.NkeysError, ValueError) as error:
        # The seed is a secret, so the words do not quote it.
        raise InvalidCredentialsError("this is not the seed of an NKey") from error
