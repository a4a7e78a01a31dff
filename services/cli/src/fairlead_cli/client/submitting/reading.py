"""Jobs as people give them: flags, a file of JSON or YAML with one or many, JSON lines.

Bodies are not checked here beyond what publishing needs: the service checks them, and its answer is the one that
counts.
"""

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from fairlead_cli.errors import InputError, unreadable
from fairlead_contracts.base.duplicate_keys import parse_json

_LINES = (".jsonl", ".ndjson")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A job to publish: where to, and the body."""

    cluster: str
    tenant: str
    id: str
    body: Mapping[str, object]

    def payload(self) -> bytes:
        """The body as it is published."""
        return msgspec.json.encode(self.body)


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """Values that the flags give; a job that says one itself keeps its own."""

    cluster: str
    tenant: str | None = None
    fields: Mapping[str, object] = {}


def read_file(path: Path) -> Iterator[object]:
    """The jobs of a file, as plain values.

    Raises:
        InputError: it cannot be read or parsed.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    if path.suffix in _LINES:
        yield from read_lines(text.splitlines(), name=str(path))
        return
    for found in _parse(text, name=str(path)):
        yield from found if isinstance(found, list) else [found]


def _parse(text: str, *, name: str) -> list[object]:
    """The documents of a text: of JSON, else of YAML, which may hold several."""
    try:
        return [_json(text)]
    except _GivenTwiceError as error:
        raise InputError(f"{name}: {error}") from error
    except (ValueError, RecursionError):
        pass
    from fairlead_contracts.base.yaml_text import (  # only who writes it waits for it
        YamlError,
        parse_yaml,
    )

    try:
        found = parse_yaml(text)
    except YamlError as error:
        raise InputError(f"{name} is neither JSON nor YAML: {error}") from error
    if found.problems:
        raise InputError(f"{name}: {'; '.join(map(str, found.problems))}")
    return [document for document in found.documents if document is not None]


class _GivenTwiceError(ValueError):
    """An object has a key twice, of which the last one would win."""


def _json(text: str) -> object:
    found, twice = parse_json(text.encode(), constant=_no_number)
    if twice:
        raise _GivenTwiceError("; ".join(map(str, twice)))
    return found


def _no_number(name: str) -> object:
    """Refuses NaN and Infinity: Python reads them, they are no JSON, and the service would see null."""
    raise ValueError(f"{name} is not a number of JSON")


def _no_numbers(value: object, path: str) -> Iterator[str]:
    """Problems with NaN and infinities of flags and YAML: they would be published as null."""
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{path}: must be a finite number (found {value})"
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _no_numbers(part, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _no_numbers(part, f"{path}[{number}]")


def read_lines(lines: Iterable[str], *, name: str) -> Iterator[object]:
    """The jobs of JSON lines; blank ones are skipped.

    Raises:
        InputError: a line is not JSON.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield _json(line)
        except _GivenTwiceError as error:
            raise InputError(f"{name}, line {number}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{name}, line {number} is not JSON: {error}") from error


def draft(found: object, defaults: Defaults) -> Draft:
    """A job, completed by the flags; without an id it is given one, so that its answers can be followed.

    Raises:
        InputError: it is not a mapping, or nobody says whose it is.
    """
    if not isinstance(found, dict):
        raise InputError(f"a job must be a mapping of keys and values, not {found!r}")
    body: dict[str, object] = {**defaults.fields, **found}
    cluster = body.pop("cluster", defaults.cluster)
    tenant = body.pop("tenant", defaults.tenant)
    if tenant is None:
        raise InputError("no tenant is given", hint="Say whose job it is with --tenant NAME.")
    if not isinstance(tenant, str) or not tenant:
        raise InputError(f"tenant: must be a name (found {tenant!r})")
    if not isinstance(cluster, str) or not cluster:
        raise InputError(f"cluster: must be a name (found {cluster!r})")
    if odd := next(_no_numbers(body, ""), None):
        raise InputError(odd)
    body.setdefault("id", f"job-{secrets.token_hex(5)}")
    return Draft(cluster=cluster, tenant=tenant, id=str(body["id"]), body=body)
