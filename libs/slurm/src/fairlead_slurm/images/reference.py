"""An image's name, as `docker pull` and a kubelet read it. Pure.

The grammar is that of https://github.com/distribution/reference; what names no registry is Docker Hub's.
"""

import re

import msgspec

from fairlead_slurm.errors import FatalSlurmError

DOCKER_HUB = "docker.io"
_HOST = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::[0-9]{1,5})?", re.ASCII)  # fmt: skip
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_PART}(?:/{_PART})*", re.ASCII)
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[0-9a-fA-F]{32,}", re.ASCII)
_LONGEST_PATH = 255


class ImageNameError(FatalSlurmError):
    """No image can be called so; carries why."""


class ImageReference(msgspec.Struct, frozen=True, kw_only=True):
    """The place where an image lies."""

    registry: str
    """Host, with its port where it has one."""
    path: str
    version: str
    """A tag, or a digest."""

    def __str__(self) -> str:
        return f"{self.registry}/{self.path}{'@' if ':' in self.version else ':'}{self.version}"


def image_reference(text: str) -> ImageReference:
    """Read an image's name.

    Raises:
        ImageNameError: the text is no image's name.
    """
    rest, at, digest = text.partition("@")
    if at and _DIGEST.fullmatch(digest) is None:
        raise ImageNameError(f"image {text[:80]!r}: what follows @ has to be a digest, as sha256:...")
    first, slash, after = rest.partition("/")
    # A first part is a host where it could be nothing else.
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    registry, rest = (first, after) if is_host else (DOCKER_HUB, rest)
    path, colon, tag = rest.partition(":")
    if _HOST.fullmatch(registry) is None:
        raise ImageNameError(f"image {text[:80]!r}: {registry[:80]!r} is no host")
    if _PATH.fullmatch(path) is None or len(path) > _LONGEST_PATH:
        mend = "; it has to be in small letters" if path != path.lower() else ""
        raise ImageNameError(f"image {text[:80]!r}: {path[:80]!r} is no name of an image{mend}")
    if colon and _TAG.fullmatch(tag) is None:
        raise ImageNameError(f"image {text[:80]!r}: {tag[:80]!r} is no tag")
    if registry == DOCKER_HUB and "/" not in path:
        path = f"library/{path}"
    return ImageReference(registry=registry, path=path, version=digest or tag or "latest")
