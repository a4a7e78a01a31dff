"""A registry's HTTP API, as far as it takes to know whether an image is there.

As the OCI distribution specification 1.1 pulls manifests, and https://distribution.github.io/distribution/spec/auth/token/ gives
tokens.

A registry is a stranger: it gets the words that are kept for its own name and no others, its answers are read to a bound, and
all that it asks for takes place within one deadline.
"""

import asyncio
import enum
import ipaddress
import re
from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

import aiohttp
import msgspec

from fairlead_slurm.images.credentials import Credential
from fairlead_slurm.images.reference import DOCKER_HUB, ImageReference

_HUB_SERVER = "registry-1.docker.io"
_KINDS = (
    "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json,"
    " application/vnd.docker.distribution.manifest.list.v2+json, application/vnd.docker.distribution.manifest.v2+json"
)
_LONGEST_TOKEN = 64 * 1024
_MOST_REDIRECTS = 3
_CHALLENGE = re.compile(r'([A-Za-z]+)="([^"]*)"')
_FOUND, _UNAUTHORIZED = 200, 401


class Presence(enum.StrEnum):
    """Presence of an image, as far as its registry tells it."""

    THERE = "there"
    MISSING = "missing"
    UNASKED = "unasked"
    """The registry did not answer, or did not say."""


class ImageAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A registry's answer about an image."""

    presence: Presence
    why: str = ""
    """Reason for which the image is not there or not known to be; empty where it is there."""


class _Token(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""


class Registries:
    """A client of image registries.

    Args:
        seconds: longest time of all requests about one image.
        plain: hosts that are spoken to without TLS; this machine always is, as docker does it.
    """

    def __init__(
        self, credentials: Mapping[str, Credential], *, seconds: float, plain: Collection[str] = ()
    ) -> None:
        self._credentials = credentials
        self._seconds = seconds
        self._plain = frozenset(plain)

    async def ask(self, image: ImageReference) -> ImageAnswer:
        """Whether the image is there. Never raises for what a registry does."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._ask(image)
        except TimeoutError:
            return _unasked(f"{image.registry} did not answer within {self._seconds:g} s")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _unasked(f"{image.registry}: {str(error) or type(error).__name__}"[:300])

    async def _ask(self, image: ImageReference) -> ImageAnswer:
        server = _HUB_SERVER if image.registry == DOCKER_HUB else image.registry
        url = f"{'http' if self._is_plain(server) else 'https'}://{server}/v2/{image.path}/manifests/{image.version}"
        known = self._credentials.get(image.registry)
        async with aiohttp.ClientSession(trust_env=True) as session:
            status, challenge = await _head(session, url, {})
            if status == _UNAUTHORIZED and challenge:
                status, _ = await _head(session, url, await self._authorized(session, challenge, image))
        return _answer(image, status, known=known is not None)

    async def _authorized(
        self, session: aiohttp.ClientSession, challenge: str, image: ImageReference
    ) -> dict[str, str]:
        """The header that a registry asks for: Basic with the words kept for it, or its server's token."""
        kind, _, rest = challenge.partition(" ")
        words = dict(_CHALLENGE.findall(rest))
        known = self._credentials.get(image.registry)
        login = {} if known is None else {"Authorization": known.basic}
        if kind.lower() == "basic":
            return login
        realm = words.get("realm", "")
        if kind.lower() != "bearer" or not self._may_be_told(realm):
            raise ValueError(f"it asks for {kind[:20]!r} at {realm[:100]!r}, which is not answered")
        query = {"scope": f"repository:{image.path}:pull"}
        if words.get("service"):
            query["service"] = words["service"]
        async with session.get(realm, params=query, headers=login, allow_redirects=False) as answer:
            if answer.status != _FOUND:
                return {}
            content = await answer.content.read(_LONGEST_TOKEN)
        try:
            found = msgspec.json.decode(content, type=_Token)
        except msgspec.MsgspecError as error:
            raise ValueError("its token cannot be read") from error
        return {"Authorization": f"Bearer {found.token or found.access_token}"}

    def _may_be_told(self, realm: str) -> bool:
        """Whether a token server may be told a registry's words: over TLS, or where the site does without."""
        parts = urlsplit(realm)
        return bool(parts.hostname) and (
            parts.scheme == "https" or (parts.scheme == "http" and self._is_plain(parts.netloc))
        )

    def _is_plain(self, server: str) -> bool:
        return server in self._plain or _is_here(server)


async def _head(session: aiohttp.ClientSession, url: str, more: Mapping[str, str]) -> tuple[int, str]:
    headers = {"Accept": _KINDS, **more}
    async with session.head(
        url, headers=headers, allow_redirects=True, max_redirects=_MOST_REDIRECTS
    ) as answer:
        return answer.status, answer.headers.get("WWW-Authenticate", "")


def _is_here(server: str) -> bool:
    host = urlsplit(f"//{server}").hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _answer(image: ImageReference, status: int, *, known: bool) -> ImageAnswer:
    match status:
        case 200:
            return ImageAnswer(presence=Presence.THERE)
        case 404:
            return ImageAnswer(presence=Presence.MISSING, why=f"{image} is not there")
        case 401 | 403:
            whose = "with the credentials that are known for it" if known else "without credentials"
            return _unasked(f"{image.registry} does not say whether {image} is there {whose}")
        case _:
            return _unasked(f"{image.registry} answers with HTTP status {status}")


def _unasked(why: str) -> ImageAnswer:
    return ImageAnswer(presence=Presence.UNASKED, why=why)
