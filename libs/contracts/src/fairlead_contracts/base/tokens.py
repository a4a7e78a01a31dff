"""Names as tokens of NATS subjects and as parts of KV keys.

A subject token may not hold dots, blanks, `*` or `>`; names of jobs, namespaces and tenants do. Tokens are
percent-encoded over UTF-8. KV keys refuse `%`, so `=` takes its place there. Their length is limited: a server closes
the connection of a client whose subject does not fit into its control line (4,096 bytes), so a name that somebody
else chose could otherwise cut off whoever writes about it.
"""

import re
from urllib.parse import quote, unquote

from fairlead_contracts.base.errors import FieldError

NO_NAME = "_"
"""The token where an object has no scope. A name that is itself `_` is encoded, so the two cannot be
confused."""

MAX_TOKEN = 1024
"""Bytes of an encoded name. A subject holds at most three of them."""

# quote() leaves letters, digits, "_", ".", "-" and "~" as they are; a dot separates tokens, and KV keys refuse "~".
_STILL_RESERVED = {".": "%2E", "~": "%7E"}


_is_plain = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_TOKEN}}}").fullmatch
"""The match of a name that needs no encoding. Most need none, and this test costs a tenth of it."""


def encode_token(name: str) -> str:
    """The name as one subject token.

    Raises:
        FieldError: the name is empty, too long, or is not valid Unicode.
    """
    if not name:
        raise FieldError("name", name, "a name may not be empty")
    if name == NO_NAME:
        return "%5F"
    if _is_plain(name):
        return name
    try:
        token = quote(name, safe="")
    except UnicodeEncodeError as error:
        raise FieldError("name", name, "a name must be valid Unicode") from error
    for character, escape in _STILL_RESERVED.items():
        token = token.replace(character, escape)
    if len(token) > MAX_TOKEN:
        raise FieldError("name", name, f"a name may have {MAX_TOKEN} bytes when encoded, not {len(token)}")
    return token


def decode_token(token: str) -> str:
    """The name behind a subject token; tokens that were never encoded come back as they are."""
    return unquote(token, errors="replace")


def encode_key(name: str) -> str:
    """The name as one part of a KV key."""
    return encode_token(name).replace("%", "=")


def decode_key(part: str) -> str:
    """The name behind one part of a KV key."""
    return decode_token(part.replace("=", "%"))
