"""Abilities of a slurmrestd, read from its description of itself. Pure."""

import re
from collections.abc import Mapping

import msgspec

from fairlead_slurm.errors import UnreadableError

READ_FORMS = ("v0.0.42", "v0.0.41", "v0.0.40", "v0.0.38", "v0.0.37", "v0.0.36")
"""Versions whose answers this code knows, the one that it likes best first: 22.05 has up to v0.0.38, 24.11 v0.0.40 to v0.0.42."""
LEVEL_FORMS = ("v0.0.42", "v0.0.41", "v0.0.40")
"""Versions whose way to set SiteFactor was tried."""
_TELL_DEFAULTS = ("v0.0.38", "v0.0.37", "v0.0.36")
"""Versions that say which partition is the default one; later ones do not."""
_JOBS = re.compile(r"/slurm/(v\d+\.\d+\.\d+)/jobs/?")
_SITE_FACTOR = "site_factor"


class RestApi(msgspec.Struct, frozen=True, kw_only=True):
    """Versions by which to speak to one slurmrestd."""

    reads: str
    """Version to read and cancel by."""
    levels: str | None
    """Version that can set SiteFactor; None where none can."""

    @property
    def tells_partitions(self) -> bool:
        """Whether slurmrestd tells all that is asked of partitions."""
        return self.reads in _TELL_DEFAULTS


class _ApiDescribed(msgspec.Struct, frozen=True):
    ref: str = msgspec.field(default="", name="$ref")
    properties: dict[str, msgspec.Raw] = {}


class _ApiMedia(msgspec.Struct, frozen=True):
    described: _ApiDescribed = msgspec.field(default_factory=_ApiDescribed, name="schema")


class _ApiBody(msgspec.Struct, frozen=True):
    content: dict[str, _ApiMedia] = {}


class _ApiOperation(msgspec.Struct, frozen=True):
    body: _ApiBody = msgspec.field(default_factory=_ApiBody, name="requestBody")


class _ApiPath(msgspec.Struct, frozen=True):
    post: _ApiOperation | None = None


class _ApiComponents(msgspec.Struct, frozen=True):
    schemas: dict[str, _ApiDescribed] = {}


class _ApiDocument(msgspec.Struct, frozen=True):
    paths: dict[str, _ApiPath] = {}
    components: _ApiComponents = msgspec.field(default_factory=_ApiComponents)


def api_of(document: bytes) -> RestApi:
    """The API that /openapi/v3 describes.

    Raises:
        UnreadableError: the document is no such one, or has no version that this code knows.
    """
    try:
        found = msgspec.json.decode(document, type=_ApiDocument)
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"slurmrestd's description of itself: {error}") from error
    offered = sorted(
        {match[1] for path in found.paths if (match := _JOBS.fullmatch(path))}, key=_number, reverse=True
    )
    reads = next((version for version in READ_FORMS if version in offered), None)
    if reads is None:
        raise UnreadableError(
            f"slurmrestd offers {', '.join(offered) or 'no version'}, and {', '.join(READ_FORMS)} are known"
        )
    levels = next(
        (one for one in LEVEL_FORMS if one in offered and _SITE_FACTOR in _updated(found, one)), None
    )
    return RestApi(reads=reads, levels=levels)


def _updated(document: _ApiDocument, version: str) -> Mapping[str, msgspec.Raw]:
    """Fields that an update of a job may set, by name."""
    path = document.paths.get(f"/slurm/{version}/job/{{job_id}}")
    if path is None or path.post is None:
        return {}
    fields: dict[str, msgspec.Raw] = {}
    for media in path.post.body.content.values():
        named = document.components.schemas.get(media.described.ref.rpartition("/")[2], _ApiDescribed())
        fields |= named.properties | media.described.properties
    return fields


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.removeprefix("v").split("."))
