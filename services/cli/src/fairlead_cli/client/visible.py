"""Texts of answers as a terminal may have them: what would move its cursor, colour it, turn its words round or hide is written out.

Names come from whoever submits. Programs get them as they are.
"""

import re

import msgspec

from fairlead_contracts.base.errors import printable

_ESCAPED = re.compile(r"\\[bfnrtu]")
"""Escapes of JSON for control characters; all else that is hidden stands in it as it is."""
_SPACES = re.compile(r"[\t\n\v\f\r\u2028\u2029]")


def visible[T: msgspec.Struct](answer: T) -> T:
    """The answer with hidden characters written out in all of its texts, and lines of a text joined."""
    whole = msgspec.json.encode(answer).decode()
    if whole.isprintable() and not _ESCAPED.search(whole):
        return answer
    return msgspec.convert(_seen(msgspec.to_builtins(answer)), type(answer))


def _seen(value: object) -> object:
    match value:
        case str():
            return printable(_SPACES.sub(" ", value))
        case list():
            return [_seen(one) for one in value]
        case dict():
            return {_seen(key): _seen(one) for key, one in value.items()}
        case _:
            return value
