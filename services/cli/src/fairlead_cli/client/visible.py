"""Texts of answers as a terminal may have them: what would move its cursor, colour it or turn its words round is written out.

Names come from whoever submits. Programs get them as they are.
"""

import re

import msgspec

_AT_ALL = re.compile(rb"\\[bfnrtu]|\x7f|\xc2[\x80-\x9f]|\xe2\x80[\x8e-\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]")
"""Bytes of JSON without which the other two patterns find nothing in it."""
_SPACES = re.compile(r"[\t\n\v\f\r\u2028\u2029]")
_HIDDEN = re.compile(r"[\0-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Control characters, and those that turn the direction of the text behind them."""


def visible[T: msgspec.Struct](answer: T) -> T:
    """The answer with control characters written out in all of its texts, and lines of a text joined."""
    if not _AT_ALL.search(msgspec.json.encode(answer)):
        return answer
    return msgspec.convert(_seen(msgspec.to_builtins(answer)), type(answer))


def _seen(value: object) -> object:
    match value:
        case str():
            return _HIDDEN.sub(lambda found: ascii(found[0])[1:-1], _SPACES.sub(" ", value))
        case list():
            return [_seen(one) for one in value]
        case dict():
            return {_seen(key): _seen(one) for key, one in value.items()}
        case _:
            return value
