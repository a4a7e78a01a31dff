"""Policy files: YAML read and checked whole; the ones that ship with the command; loading into the policy bucket."""

from importlib.resources import files
from pathlib import Path

import msgspec
import yaml

from fairlead_bus import Bucket, Bus, KeyExistsError, WrongRevisionError
from fairlead_cli.connection import connected
from fairlead_cli.console import say, write_line
from fairlead_cli.errors import CommandError, InputError
from fairlead_contracts import subjects, topology
from fairlead_contracts.document import PolicyDocument, decode_document, encode_document, read_document
from fairlead_contracts.errors import DocumentError

_ATTEMPTS = 5


def read_policy(path: Path) -> PolicyDocument:
    """The policy of a file.

    Raises:
        InputError: it cannot be read, is not YAML, or does not validate; with every problem.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    return parse_policy(text, name=str(path))


def parse_policy(text: str, *, name: str) -> PolicyDocument:
    """The policy of a text; see read_policy."""
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{name} is not valid YAML: {error}") from error
    try:
        return read_document(found)
    except DocumentError as error:
        raise InputError(
            f"{name} does not validate, nothing was changed:", problems=[str(part) for part in error.problems]
        ) from error


def shipped_policy(name: str) -> PolicyDocument:
    """A policy that ships with the command: `laptop` or `demo`."""
    text = (files("fairlead_cli") / "policies" / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_policy(text, name=f"{name}.yaml")


async def apply_policy(bus: Bus, document: PolicyDocument, *, keep: bool = False) -> tuple[int, bool]:
    """Make the stored policy equal to the document, or with `keep` only where none is stored.

    Returns:
        The policy's revision, and whether it was written: an equal one is left as it stands.

    Raises:
        CommandError: others kept writing between our reading and our writing.
    """
    bucket = Bucket(bus, topology.POLICY)
    payload = encode_document(document)
    for _ in range(_ATTEMPTS):
        entry = await bucket.get(subjects.DOCUMENT_KEY)
        try:
            if entry is None:
                return await bucket.create(subjects.DOCUMENT_KEY, payload), True
            if keep or entry.value == payload:
                return entry.rev, False
            return await bucket.update(subjects.DOCUMENT_KEY, payload, entry.rev), True
        except (KeyExistsError, WrongRevisionError):
            continue  # somebody wrote in between: look again
    raise CommandError("the policy is being written by somebody else; it was left as it is")


async def stored_policy(bus: Bus) -> tuple[PolicyDocument, int] | None:
    """The policy that holds, with its revision."""
    entry = await Bucket(bus, topology.POLICY).get(subjects.DOCUMENT_KEY)
    return None if entry is None else (decode_document(entry.value), entry.rev)


def as_yaml(document: PolicyDocument) -> str:
    """The document as a person edits it; what a tenant or grant leaves out is left out."""
    plain: dict[str, object] = msgspec.to_builtins(document)
    for key in ("tenants", "grants"):
        parts = msgspec.convert(plain[key], list[dict[str, object]])
        plain[key] = [
            {name: value for name, value in part.items() if value not in (None, "")} for part in parts
        ]
    text: str = yaml.safe_dump(plain, sort_keys=False, allow_unicode=True)
    return text


async def put_in_force(nats: str | None, path: Path) -> None:
    """Check a file and make it the policy; say what happened."""
    document = read_policy(path)
    async with connected(nats) as bus:
        revision, written = await apply_policy(bus, document)
    say(
        f"policy revision {revision}: "
        + (f"{path} is in force" if written else f"{path} was in force already")
    )


async def print_policy(nats: str | None, *, as_json: bool) -> None:
    """Print the policy that is in force.

    Raises:
        CommandError: there is none.
    """
    async with connected(nats) as bus:
        found = await stored_policy(bus)
    if found is None:
        raise CommandError(
            "there is no policy yet", hint="Put one in force with `fairlead policy apply FILE`."
        )
    document, revision = found
    if as_json:
        write_line(encode_document(document).decode())
    else:
        write_line(f"# policy revision {revision}\n{as_yaml(document)}".rstrip())
