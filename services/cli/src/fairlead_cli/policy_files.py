"""Policy files: YAML read and checked whole; the ones that ship with the command; loading into the policy bucket."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import msgspec
import yaml

from fairlead_bus import Bucket, Bus, KeyExistsError, WrongRevisionError
from fairlead_cli.connection import connected
from fairlead_cli.console import say, warn, write_line
from fairlead_cli.errors import CommandError, InputError
from fairlead_cli.yaml_files import read_yaml
from fairlead_contracts import subjects, topology
from fairlead_contracts.document import PolicyDocument, decode_document, encode_document, read_document
from fairlead_contracts.errors import DocumentError
from fairlead_contracts.older_formats import from_environment
from fairlead_policy import reserves

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
    found: object = from_environment(text)
    try:
        found = read_yaml(text) if found is None else found
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
    if document.fit.strategy != "none":
        warn("fit.strategy counts in `fairlead order` alone: the cluster's own scheduler places pods")
    reserved = [pool.name for pool in document.pools if reserves(document, pool.name)]
    if reserved or document.mode == "reserve":
        names = ", ".join(reserved) or "every pool"
        say(
            f"reserve mode in {names}: it takes one StrictFIFO ClusterQueue each; `fairlead doctor` says where not"
        )
    async with connected(nats) as bus:
        revision, written = await apply_policy(bus, document)
    say(
        f"policy revision {revision}: "
        + (f"{path} is in force" if written else f"{path} was in force already")
    )


async def print_differences(nats: str | None, path: Path) -> bool:
    """Print what putting a file in force would change; whether that is anything."""
    after = read_policy(path)
    async with connected(nats) as bus:
        found = await stored_policy(bus)
    before = None if found is None else found[0]
    lines = list(differences(before, after))
    for line in lines:
        write_line(line)
    if not lines:
        say(f"{path} is what is in force")
    return bool(lines)


def differences(before: PolicyDocument | None, after: PolicyDocument) -> Iterator[str]:
    """Each key that differs: `- key: value` as it is, `+ key: value` as it would be."""
    old = {} if before is None else _flat(msgspec.to_builtins(before), "")
    new = _flat(msgspec.to_builtins(after), "")
    for key in sorted(old.keys() | new.keys()):
        for sign, known in (("-", old), ("+", new)):
            if key in known and (key not in old or key not in new or old[key] != new[key]):
                yield f"{sign} {key}: {msgspec.json.encode(known[key]).decode()}"


def _flat(value: object, name: str) -> dict[str, object]:
    """Leaves by path; entries with a name go by it, so that their order in the file is no difference."""
    if isinstance(value, dict) and value:
        parts = [(f"{name}.{key}".lstrip("."), part) for key, part in value.items()]
    elif isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        parts = [(f"{name}[{_called(part, at)}]", part) for at, part in enumerate(value)]
    else:
        return {name: value}
    return {key: leaf for path, part in parts for key, leaf in _flat(part, path).items()}


def _called(entry: dict[str, object], at: int) -> object:
    return entry.get("name", at)


def print_file(path: Path, *, as_json: bool) -> None:
    """Print the policy that a file means, with every key written out."""
    document = read_policy(path)
    write_line(encode_document(document).decode() if as_json else as_yaml(document).rstrip())


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
