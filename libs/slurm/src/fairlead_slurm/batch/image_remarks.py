"""Remarks on a script's image, by its registry's answer and the site's rule."""

import enum
from typing import Protocol

from fairlead_slurm.batch.options import Remark
from fairlead_slurm.images.reference import ImageReference, image_reference
from fairlead_slurm.images.registry import ImageAnswer, Presence


class ImageRule(enum.StrEnum):
    """A site's rule for scripts whose image is not there, or whose registry does not say."""

    OFF = "off"
    """No registry is asked."""
    WARN = "warn"
    """Warn of such images; no script is refused."""
    REFUSE = "refuse"
    """Refuse images that are not there; warn where the registry does not say."""
    STRICT = "strict"
    """Refuse images that are not there, and those of which the registry does not say."""


class Registry(Protocol):
    """A registry that knows of images."""

    async def ask(self, image: ImageReference) -> ImageAnswer:
        """Whether the image is there."""


async def image_remarks(line: int, image: str, registry: Registry, rule: ImageRule) -> list[Remark]:
    """The remark on an image, if any; the image's name was checked before."""
    if rule is ImageRule.OFF:
        return []
    found = await registry.ask(image_reference(image))
    match found.presence:
        case Presence.THERE:
            return []
        case Presence.MISSING:
            return [Remark(line=line, says=f"image {found.why}", refused=rule is not ImageRule.WARN)]
        case Presence.UNASKED:
            says = f"whether the image is there is not known: {found.why}"
            return [Remark(line=line, says=says, refused=rule is ImageRule.STRICT)]
