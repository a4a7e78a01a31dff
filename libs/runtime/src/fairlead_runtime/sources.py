"""Sources of settings: defaults, below a YAML file, below the environment, below flags.

Each value is converted by itself, so that all problems are told at once, each with the place that it came from. The
file is our own: a key in it that no setting has is an error. The environment is shared by several services and is not.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeAliasType, get_args, get_origin

import msgspec

from fairlead_runtime.errors import SettingsError
from fairlead_runtime.settings import Setting, describe, hide_user_info

_SHOWN_CHARACTERS = 80


class _FoundValue(msgspec.Struct, frozen=True):
    """A value with the place it was found at."""

    value: object
    place: str
    text: bool
    """Whether the value is text that still has to be read as the field's type: of the environment or a
    flag."""


def load_settings[T: msgspec.Struct](
    kind: type[T],
    *,
    environ: Mapping[str, str],
    file: str | None = None,
    arguments: Mapping[str, str] | None = None,
) -> T:
    """The settings: flags over environment over file over defaults.

    Args:
        environ: the environment; field `nats_url` is `FAIRLEAD_NATS_URL` there.
        file: path of a YAML file with the fields as keys.
        arguments: flags as given, by field name.

    Raises:
        SettingsError: with every problem found.
    """
    settings = describe(kind)
    found, problems = _from_file(settings, file)
    for setting in settings:
        if (variable := setting.variable()) in environ:
            found[setting.name] = _FoundValue(environ[variable], variable, text=True)
        if arguments and setting.name in arguments:
            found[setting.name] = _FoundValue(arguments[setting.name], setting.flag, text=True)
    values: dict[str, object] = {}
    for setting in settings:
        if setting.name not in found:
            if setting.default is msgspec.NODEFAULT:
                problems.append(f"{setting.flag} or {setting.variable()} must be given: {setting.doc}")
            continue
        try:
            values[setting.name] = _convert(setting, found[setting.name])
        except msgspec.ValidationError as error:
            problems.append(_problem(setting, found[setting.name], error))
    if problems:
        raise SettingsError(problems)
    return _build(kind, values)


def add_arguments(parser: argparse.ArgumentParser, kind: type[msgspec.Struct]) -> None:
    """Add a flag for each setting but secrets: everybody on a host can read its processes' command lines."""
    for setting in describe(kind):
        if setting.secret:
            continue
        default = "" if setting.default is None else f", default {setting.default}"
        if setting.default is msgspec.NODEFAULT:
            default = ", required"
        text = f"{setting.doc} [{setting.variable()}{default}]".replace("%", "%%")
        if setting.hint is bool:
            parser.add_argument(setting.flag, action=argparse.BooleanOptionalAction, default=None, help=text)
        else:
            parser.add_argument(
                setting.flag, metavar=setting.name.rpartition("_")[2].upper(), default=None, help=text
            )


def given_arguments(parsed: argparse.Namespace, kind: type[msgspec.Struct]) -> dict[str, str]:
    """The flags that were given, as `load_settings` takes them."""
    given = {setting.name: getattr(parsed, setting.name, None) for setting in describe(kind)}
    return {
        name: str(value).lower() if isinstance(value, bool) else value
        for name, value in given.items()
        if value is not None
    }


def _from_file(settings: tuple[Setting, ...], file: str | None) -> tuple[dict[str, _FoundValue], list[str]]:
    if file is None:
        return {}, []
    try:
        content, stands = _read_file(file)
    except SettingsError as error:
        return {}, error.problems
    known = {setting.name for setting in settings}
    problems = [
        f"{file}: {stands.get(str(key), '')}{key!r} is no setting of this service"
        for key in content
        if key not in known
    ]
    return {
        str(key): _FoundValue(
            value, f"{file}: {key}: {stands.get(str(key), '')}".removesuffix(": "), text=False
        )
        for key, value in content.items()
        if key in known
    }, problems


def _read_file(file: str) -> tuple[dict[object, object], dict[str, str]]:
    """Keys and values of a file, and the places of its keys. No value is quoted: it may be secret.

    Raises:
        SettingsError: it cannot be read, or holds something else.
    """
    from fairlead_contracts.base.places import (
        not_utf8,  # here: most services are told everything by environment and flags
    )
    from fairlead_contracts.base.reading import no_mapping
    from fairlead_contracts.base.yaml_text import YamlError, parse_yaml, places

    try:
        text = Path(file).read_text(encoding="utf-8")
        parsed = parse_yaml(text)
        content = parsed.only
    except OSError as error:
        raise SettingsError([f"{file}: cannot be read: {error.strerror or error}"]) from error
    except UnicodeDecodeError as error:
        raise SettingsError([f"{file}: cannot be read: {not_utf8(error)}"]) from error
    except YamlError as error:
        raise SettingsError([f"{file}: cannot be read: {error}"]) from error
    if parsed.problems:
        raise SettingsError([f"{file}: cannot be read: {one.unquoted()}" for one in parsed.problems])
    if content is not None and not isinstance(content, dict):
        raise SettingsError([f"{file}: {no_mapping('document', content).reason}"])
    return content or {}, places(text)


def _convert(setting: Setting, found: _FoundValue) -> object:
    """The value as the field has it. Text has lists as `a,b` and maps as `a=1,b=2`; empty text is None."""
    if not found.text:
        return msgspec.convert(found.value, setting.hint)
    hint = _written_out(setting.hint)
    kinds = [get_origin(kind) or kind for kind in (hint, *get_args(hint))]
    value: object = str(found.value)
    parts = [part.strip() for part in str(found.value).split(",") if part.strip()]
    if list in kinds:
        value = parts
    elif dict in kinds:
        value = {key.strip(): of_key.strip() for key, _, of_key in (part.partition("=") for part in parts)}
    elif value == "" and type(None) in kinds:
        value = None
    return msgspec.convert(value, setting.hint, strict=False)


def _problem(setting: Setting, found: _FoundValue, error: msgspec.ValidationError) -> str:
    if setting.secret:
        return f"{found.place}: {error}"
    shown = hide_user_info(repr(found.value))
    if len(shown) > _SHOWN_CHARACTERS:
        shown = shown[: _SHOWN_CHARACTERS - 1] + "…"
    hint = _written_out(setting.hint)
    reason = f"must be one of {', '.join(get_args(hint))}" if get_origin(hint) is Literal else error
    return f"{found.place}: {reason} (found {shown})"


def _written_out(hint: object) -> object:
    """The type behind its aliases."""
    while isinstance(hint, TypeAliasType):
        hint = hint.__value__
    return hint


def _build[T: msgspec.Struct](kind: type[T], values: dict[str, object]) -> T:
    """The struct itself; a `__post_init__` may still refuse a combination by raising ValueError."""
    try:
        return kind(**values)
    except ValueError as error:
        raise SettingsError([str(error)]) from error
