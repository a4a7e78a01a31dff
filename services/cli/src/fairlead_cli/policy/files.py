"""Policy files: YAML read and checked whole; the ones that ship with the command; policies in words."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType

import msgspec

from fairlead_cli.errors import InputError, unreadable
from fairlead_contracts.base.errors import DocumentError, FieldError
from fairlead_contracts.base.yaml_text import YamlError, parse_yaml, with_places, write_yaml
from fairlead_contracts.policyfile.document import PolicyDocument
from fairlead_contracts.policyfile.older_controllers import from_environment, in_our_words
from fairlead_contracts.policyfile.read import read_document

MADE_FROM = "# policy revision "
"""Beginning of the line above a printed policy, with its revision: a file that has it is put over that one
alone."""
_NOTHING: tuple[object, ...] = (None, "", [], {})
_REVISION = re.compile(re.escape(MADE_FROM) + r"(\d{1,18})\s*")


class PolicyFile(msgspec.Struct, frozen=True, kw_only=True):
    """A policy, and what its file says of where it comes from."""

    name: str
    """Name of the file, for people."""
    policy: PolicyDocument
    revision: int | None = None
    """Revision that the file was made from: `fairlead policy show` writes it above the policy."""
    says: frozenset[str] | None = None
    """The keys that count over a policy in force, where the file is a configuration of an older controller."""

    @property
    def controller(self) -> str:
        """The older one whose formula this is."""
        return "DRF" if self.policy.class_mode == "additive" else "WDRF"


def read_file(path: Path) -> PolicyFile:
    """A policy file.

    Raises:
        InputError: it cannot be read, is not YAML, or does not validate; with every problem.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
    return parse_file(text, name=str(path))


def parse_file(text: str, *, name: str) -> PolicyFile:
    """A policy file's text; see read_file."""
    unread: list[FieldError] = []
    found: object = from_environment(text)
    if found is None:
        try:
            parsed = parse_yaml(text)
            found, unread = parsed.only, parsed.problems
        except YamlError as error:
            raise InputError(f"{name} is not valid YAML: {error}") from error
    if isinstance(found, Mapping) and found.keys() >= {"policy", "jobs"}:
        raise InputError(f"{name} looks like a snapshot, not a policy", hint="`fairlead order` reads it.")
    try:
        policy = read_document(found, unread=unread)
    except DocumentError as error:
        raise InputError(
            f"{name} is not a valid policy:",
            problems=[str(part) for part in with_places(error.problems, text)],
        ) from error
    return PolicyFile(name=name, policy=policy, revision=_made_from(text), says=_says(found))


def shipped_policy(name: str) -> PolicyDocument:
    """A policy that ships with the command: `laptop` or `demo`."""
    text = (files("fairlead_cli.policy") / "shipped" / f"{name}.yaml").read_text(encoding="utf-8")
    return parse_file(text, name=f"{name}.yaml").policy


def _says(found: object) -> frozenset[str] | None:
    """The keys that an older configuration states, in our words; None of a policy of ours.

    It knows no tenants: the weight of unlisted ones is no word of it.
    """
    if not isinstance(found, Mapping):
        return None
    ours = in_our_words(found).keys
    return None if ours is found else frozenset(str(key) for key in ours) - {"unlisted_weight"}


def _made_from(text: str) -> int | None:
    """The revision that the comment above the policy names."""
    for line in text.splitlines():
        if found := _REVISION.fullmatch(line):
            return int(found[1])
        if line.strip() and not line.startswith("#"):
            break
    return None


def as_yaml(document: PolicyDocument) -> str:
    """The document as a person edits it; what a tenant or grant leaves out is left out."""
    plain: dict[str, object] = msgspec.to_builtins(document)
    for key in ("tenants", "grants"):
        parts = msgspec.convert(plain[key], list[dict[str, object]])
        plain[key] = [
            {name: value for name, value in part.items() if value not in (None, "")} for part in parts
        ]
    return write_yaml(plain)


def differences(
    before: PolicyDocument | None, after: PolicyDocument, names: Mapping[str, str] = MappingProxyType({})
) -> Iterator[str]:
    """The keys that differ: `- key: value` as it is, `+ key: value` as it would be; jobs by these names."""
    old = {} if before is None else _flat(msgspec.to_builtins(before), "", names)
    new = _flat(msgspec.to_builtins(after), "", names)
    for key in sorted(old.keys() | new.keys()):
        if (key in old) != (key in new) and (old if key in old else new)[key] in _NOTHING:
            continue  # what a new entry leaves out, and what one that is gone had left out
        for sign, known in (("-", old), ("+", new)):
            if key in known and (key not in old or key not in new or old[key] != new[key]):
                yield f"{sign} {key}: {msgspec.json.encode(known[key]).decode()}"


def _flat(value: object, name: str, names: Mapping[str, str]) -> dict[str, object]:
    """Leaves by path; entries with a name go by it, so that their order in the file is no difference."""
    if isinstance(value, dict) and value:
        parts = [(f"{name}.{key}".lstrip("."), part) for key, part in value.items()]
    elif isinstance(value, list) and value and all(isinstance(part, dict) for part in value):
        parts = [
            (f"{name}[{called}]", part | {"job": names[part["job"]]} if part.get("job") in names else part)
            for called, part in zip(_called(value, names), value, strict=True)
        ]
    else:
        return {name: value}
    return {key: leaf for path, part in parts for key, leaf in _flat(part, path, names).items()}


def _called(entries: list[dict[str, object]], names: Mapping[str, str]) -> Iterator[str]:
    """Entries by their name, or the job that they are for; else by their number among those that have neither."""
    times: Counter[object] = Counter()
    for entry in entries:
        job = entry.get("job")
        known = entry.get("name") or names.get(str(job), job)
        times[known] += 1
        if known is None:
            yield str(times[known] - 1)
        else:
            yield f"{known}" if times[known] == 1 else f"{known}, {times[known]}"
