"""Snapshots as people give them: a file or standard input, JSON or YAML."""

import sys
from pathlib import Path

import msgspec

from fairlead_cli.errors import InputError, unreadable
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.json_text import WRITTEN_BY_HAND, with_json_places
from fairlead_contracts.base.yaml_text import YamlError, parse_yaml, with_places
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.snapshot.read import decode_snapshot, read_snapshot
from fairlead_contracts.snapshot.types import Snapshot, WrittenSnapshot

STANDARD_INPUT = "-"
_YAML = (".yaml", ".yml")


def read_file(path: Path) -> Snapshot:
    """The snapshot of a file, or of standard input for `-`.

    Raises:
        InputError: it cannot be read, is neither JSON nor YAML, or does not validate; with every problem.
    """
    try:
        payload = sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    try:
        return parse(payload, name=_name_of(path), is_yaml=path.suffix in _YAML)
    except DocumentError as error:
        if _is_policy(payload):
            raise InputError(
                f"{_name_of(path)} looks like a policy, not a snapshot",
                hint="`fairlead policy check` reads it.",
            ) from error
        raise refused(path, error) from error


def _is_policy(payload: bytes) -> bool:
    """Whether a text that is no snapshot has the keys of a policy, and none that only a snapshot has."""
    if len(payload) > WRITTEN_BY_HAND:
        return False
    try:
        found = parse_yaml(payload).only
    except YamlError:
        return False
    if not isinstance(found, dict) or found.keys() & (_keys_of(WrittenSnapshot) - _keys_of(PolicyDocument)):
        return False
    return bool(found.keys() & (_keys_of(PolicyDocument) - _keys_of(WrittenSnapshot)))


def _keys_of(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}


def refused(path: Path, error: DocumentError) -> InputError:
    """The error of a snapshot that does not validate."""
    return InputError(f"{_name_of(path)} does not validate:", problems=list(map(str, error.problems)))


def _name_of(path: Path) -> str:
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


def parse(payload: bytes, *, name: str, is_yaml: bool) -> Snapshot:
    """The snapshot in a text: JSON where it begins as JSON does, unless its name says YAML.

    Raises:
        InputError: it is not YAML.
        DocumentError: it does not validate; each problem has its line, but of JSON that no person writes.
    """
    if payload.lstrip()[:1] == b"{" and not is_yaml:
        try:
            return decode_snapshot(payload)
        except DocumentError as error:
            raise DocumentError(with_json_places(error.problems, payload)) from error
    try:
        parsed = parse_yaml(payload)
        found = parsed.only
    except YamlError as error:
        raise InputError(f"{name} is neither JSON nor valid YAML: {error}") from error
    try:
        return read_snapshot(found, unread=parsed.problems)
    except DocumentError as error:
        raise DocumentError(with_places(error.problems, payload)) from error
