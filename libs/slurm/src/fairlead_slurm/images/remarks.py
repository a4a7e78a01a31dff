"""What is to be said of a script's image, by what its registry says and what the site wants."""

import enum
from typing import Protocol

from fairlead_slurm.batch_options import Remark
from fairlead_slurm.images.reference import ImageReference, image_reference
from fairlead_slurm.images.registry import ImageAnswer, Presence


class ImageRule(enum.StrEnum):
    """What becomes of a script whose image is not there, or cannot be asked for."""

    OFF = "off"
    """No registry is asked."""
    WARN = "warn"
    """Nothing is refused for its image."""
    REFUSE = "refuse"
    """An image that is not there is refused; where the registry cannot be asked, that is a warning."""
    STRICT = "strict"
    """What cannot be asked for is refused, too."""


class Registry(Protocol):
    """A registry that knows of images."""

    async def ask(self, image: ImageReference) -> ImageAnswer:
        """Whether it is there."""


async def image_remarks(line: int, image: str, registry: Registry, rule: ImageRule) -> list[Remark]:
    """The remark on an image, one at most; the image's name was read before."""
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
