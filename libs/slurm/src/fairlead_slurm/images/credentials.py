"""Credentials for registries, from the files that docker, podman and Kubernetes keep them in (config.json, `auths`)."""

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from fairlead_slurm.errors import FatalSlurmError
from fairlead_slurm.images.reference import DOCKER_HUB

_HUB_KEYS = ("https://index.docker.io/v1/", "index.docker.io", DOCKER_HUB, "registry-1.docker.io")


class CredentialsUnreadableError(FatalSlurmError):
    """The file with credentials cannot be read; says which, never what is in it."""


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """A user's name at a registry, and its password or token. It prints neither."""

    user: str
    word: str

    @property
    def basic(self) -> str:
        """The credential as HTTP's Basic scheme has it."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.word}'.encode()).decode()}"

    def __repr__(self) -> str:
        return "Credential(...)"


class _Entry(msgspec.Struct, frozen=True):
    auth: str = ""
    username: str = ""
    password: str = ""


class _CredentialsFile(msgspec.Struct, frozen=True):
    auths: dict[str, _Entry] = {}


def usual_file(environ: Mapping[str, str]) -> Path | None:
    """The file of this user's credentials, of the places that docker and podman look at; None where there are none."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    places = [
        environ.get("REGISTRY_AUTH_FILE"),
        f"{environ['DOCKER_CONFIG']}/config.json" if environ.get("DOCKER_CONFIG") else None,
        f"{runtime}/containers/auth.json" if runtime else None,
        str(Path(environ.get("HOME", "/")) / ".docker" / "config.json"),
    ]
    return next((Path(place) for place in places if place and os.access(place, os.R_OK)), None)


def credentials(file: Path) -> dict[str, Credential]:
    """The credentials by registry's host. Words that a helper program keeps are not asked for.

    Raises:
        CredentialsUnreadableError: the file cannot be read.
    """
    try:
        found = msgspec.json.decode(file.read_bytes(), type=_CredentialsFile)
        return {
            _host(key): _credential(entry)
            for key, entry in found.auths.items()
            if entry.auth or entry.username
        }
    except OSError as error:
        raise CredentialsUnreadableError(f"{file}: {error.strerror or error}") from error
    except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError, RecursionError) as error:
        raise CredentialsUnreadableError(
            f"{file}: it holds no JSON with `auths` as docker keeps them"
        ) from error


def _credential(entry: _Entry) -> Credential:
    if entry.auth:
        user, _, word = base64.b64decode(entry.auth, validate=True).decode().partition(":")
        return Credential(user=user, word=word.rstrip("\0"))
    return Credential(user=entry.username, word=entry.password)


def _host(key: str) -> str:
    if key in _HUB_KEYS:
        return DOCKER_HUB
    return key.removeprefix("https://").removeprefix("http://").partition("/")[0]
