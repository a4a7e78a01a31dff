"""Words of a job's comment for its pod, as `image=registry.example/train:3 env=SEED,EPOCHS`. Pure.

Words that are no such pair, and keys that mean nothing here, are others' business.
"""

import re

import msgspec

from fairlead_slurm.errors import PodCommentError

_IMAGE = re.compile(r"[a-z0-9A-Z][\w.\-/:@+]{0,511}", re.ASCII)
_CLAIM = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?):(/[^:\s]{1,250})(:ro)?", re.ASCII)
_AMOUNT = re.compile(r"[1-9][0-9]{0,9}")
_SIZE = re.compile(r"[1-9][0-9]{0,6}(Mi|Gi|Ti)")
_VARIABLES = re.compile(r"[A-Za-z_]\w*(,[A-Za-z_]\w*)*", re.ASCII)
_TRACE = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_FOLDER = re.compile(r"(/[^/\s:]{1,250}){1,20}", re.ASCII)
_WHOLE = 100


class Claim(msgspec.Struct, frozen=True):
    """An existing volume claim that the pod mounts."""

    name: str
    path: str
    read_only: bool = False


class PodWords(msgspec.Struct, frozen=True, kw_only=True):
    """A user's words for the pod, beyond Slurm's own options."""

    image: str | None = None
    claims: tuple[Claim, ...] = ()
    scratch: str | None = None
    """Size of a claim that is made for the attempt and goes with it."""
    gpu_memory: int | None = None
    """Memory of each GPU in MiB, under HAMi; None for all of it."""
    gpu_cores: int | None = None
    """Share of each GPU's cores in per cent, under HAMi; None for all of them."""
    traceparent: str | None = None
    results: str | None = None
    """Folder of the pod whose content is moved into the job's result folder, once its program has ended."""


def pod_words(comment: str) -> PodWords:
    """Read the words for the pod in a comment.

    Raises:
        PodCommentError: a word that is meant for the pod cannot be read.
    """
    found = PodWords()
    for word in comment.split():
        key, equals, value = word.partition("=")
        if equals and key == "env":
            _matching(_VARIABLES, key, value)  # job_submit.lua takes their values
        elif equals and key in _READERS:
            found = _with(found, key, value)
    return found


def claim(text: str) -> Claim:
    """A claim as `NAME:/PATH`, or `NAME:/PATH:ro`.

    Raises:
        PodCommentError: the text is no claim.
    """
    name, _, path, mark = _matching(_CLAIM, "claim", text).groups()
    return Claim(name, path, mark is not None)


def _with(found: PodWords, key: str, value: str) -> PodWords:  # noqa: PLR0911 # a word each
    replace = msgspec.structs.replace
    match key:
        case "image":
            return replace(found, image=_matching(_IMAGE, key, value)[0])
        case "claim":
            return replace(found, claims=(*found.claims, claim(value)))
        case "scratch":
            return replace(found, scratch=_matching(_SIZE, key, value)[0])
        case "gpu-memory":
            return replace(found, gpu_memory=int(_matching(_AMOUNT, key, value)[0]))
        case "gpu-cores":
            cores = int(_matching(_AMOUNT, key, value)[0])
            if cores > _WHOLE:
                raise PodCommentError(f"the comment's gpu-cores={value} is more than a whole GPU")
            return replace(found, gpu_cores=cores)
        case "results":
            return replace(found, results=_folder(value))
        case _:
            return replace(found, traceparent=_matching(_TRACE, key, value)[0])


def _folder(value: str) -> str:
    folder = _matching(_FOLDER, "results", value)[0]
    if {".", ".."} & set(folder.split("/")):
        raise PodCommentError(f"the comment's results={value[:80]!r} leads upwards")
    return folder


def _matching(form: re.Pattern[str], key: str, value: str) -> re.Match[str]:
    match = form.fullmatch(value)
    if match is None:
        raise PodCommentError(
            f"the comment's {key}={value[:80]!r} cannot be read; it has the form {_READERS[key]}"
        )
    return match


_READERS = {
    "image": "image=REGISTRY/NAME:TAG",
    "claim": "claim=NAME:/PATH or claim=NAME:/PATH:ro",
    "scratch": "scratch=10Gi",
    "env": "env=NAME,NAME",
    "results": "results=/PATH/IN/THE/POD",
    "gpu-memory": "gpu-memory=MIB",
    "gpu-cores": "gpu-cores=PERCENT",
    "traceparent": "traceparent=00-TRACE-SPAN-01",
}
