"""Jobs as people give them: flags, a file of JSON or YAML with one or many, JSON lines.

Bodies are not checked here beyond what publishing needs: the service checks them, and its answer is the one that
counts.
"""

import codecs
import math
import secrets
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import UNSET

from fairlead_cli.errors import InputError, unreadable
from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.base.json_text import JsonError, parse_json, with_json_places
from fairlead_contracts.base.places import DEEPEST, TOO_DEEP, step
from fairlead_contracts.base.reading import no_mapping

_LINES = (".jsonl", ".ndjson")


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A job to publish: where to, and the body."""

    cluster: str
    tenant: str
    id: str
    body: Mapping[str, object]


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
        written = path.read_bytes()
        text = written.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    if path.suffix in _LINES:
        del text  # as large again
        yield from read_lines(written, name=str(path))
        return
    for found in _parse(text, name=str(path), is_json=path.suffix == ".json"):
        yield from found if isinstance(found, list) else [found]


def read_standard_input() -> Iterator[object]:
    """The jobs of standard input, which are JSON lines; see read_lines."""
    name = "standard input"
    try:
        written = sys.stdin.buffer.read()
        written.decode()
    except UnicodeDecodeError as error:
        raise unreadable(name, error) from error
    yield from read_lines(written, name=name)


def _parse(text: str, *, name: str, is_json: bool) -> list[object]:
    """The documents of a text: of JSON, else of YAML, which may hold several."""
    try:
        return [_json(text.encode())]
    except DocumentError as error:
        raise InputError(f"{name}: {error}") from error
    except JsonError as error:
        if is_json and text.lstrip().startswith(("{", "[")):
            raise InputError(f"{name} is not JSON: {error}") from error
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


def read_lines(written: bytes, *, name: str) -> Iterator[object]:
    """The jobs of JSON lines; blank ones are skipped.

    Raises:
        InputError: a line is not JSON.
    """
    # Bytes have the ends of lines alone that JSON has: those of text are letters of a JSON string, too (U+2028).
    for above, line in enumerate(written.removeprefix(codecs.BOM_UTF8).splitlines()):
        if not line.strip():
            continue
        try:
            yield _json(line, above=above)
        except DocumentError as error:
            raise InputError(f"{name}: {error}") from error
        except JsonError as error:
            raise InputError(f"{name} is not JSON: {error}") from error


def _json(text: bytes, *, above: int = 0) -> object:
    """The values of a JSON text.

    Args:
        above: number of lines above it in its file.

    Raises:
        JsonError: it is not JSON.
        DocumentError: a key is given twice, or a number is none.
    """
    try:
        found, problems = parse_json(text)
    except JsonError:
        if not above:
            raise
        return _json(b"\n" * above + text)  # once more, so that it is told where in the file
    if problems:
        raise DocumentError(with_json_places(problems, b"\n" * above + text))
    return found


def _unpublishable(body: object) -> Iterator[FieldError]:
    """Problems with what JSON cannot hold, and with NaN and infinities, which would be published as null."""
    waiting = [("", body, 1)]
    while waiting:
        path, value, depth = waiting.pop()
        match value:
            case float() if not math.isfinite(value):
                yield FieldError(path, UNSET, f"must be a finite number (found {value})")
            case str() if not _is_text(value):
                yield FieldError(path, UNSET, "half of a surrogate pair is not text")
            case dict() | list() if depth > DEEPEST:
                yield FieldError(path, UNSET, TOO_DEEP)
            case dict():
                parts = [(f"{path}.{step(key)}".lstrip("."), key, part) for key, part in value.items()]
                for where, key, _ in parts:
                    if key is None or isinstance(key, bool) or not _is_text(str(key)):
                        yield FieldError(where, UNSET, "has a name that is not text: write it in quotes")
                waiting += [(where, part, depth + 1) for where, _, part in reversed(parts)]
            case list():
                waiting += [
                    (f"{path}[{at}]", part, depth + 1) for at, part in reversed(list(enumerate(value)))
                ]
            case _:
                pass


def _is_text(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def draft(found: object, defaults: Defaults) -> Draft:
    """A job, completed by the flags; without an id it is given one, so that its answers can be followed.

    Raises:
        InputError: it is not a mapping, or nobody says whose it is.
    """
    if not isinstance(found, dict):
        raise InputError(f"a job {no_mapping('job', found).reason}")
    body: dict[str, object] = {**defaults.fields, **found}
    cluster = body.pop("cluster", defaults.cluster)
    tenant = body.pop("tenant", defaults.tenant)
    if tenant is None:
        raise InputError("no tenant is given", hint="Say whose job it is with --tenant NAME.")
    if not isinstance(tenant, str) or not tenant:
        raise InputError(f"tenant: must be a name (found {tenant!r})")
    if not isinstance(cluster, str) or not cluster:
        raise InputError(f"cluster: must be a name (found {cluster!r})")
    if odd := next(_unpublishable(body), None):
        raise InputError(str(odd))
    body.setdefault("id", f"job-{secrets.token_hex(5)}")
    return Draft(cluster=cluster, tenant=tenant, id=str(body["id"]), body=body)
