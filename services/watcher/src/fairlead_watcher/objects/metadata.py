"""Labels and annotations that people wrote on objects, cut down to what policy and questions can use. Pure."""

from collections.abc import Iterable, Mapping

import msgspec

from fairlead_contracts.frontend.marks import ASK_PREFIX, OWN_PREFIX
from fairlead_kube.kinds.objects import ObjectMeta

LONGEST_VALUE = 256
"""Characters of an annotation's value; longer ones are data, not words."""
MOST_BYTES = 32 * 1024
"""Bytes of the labels, and of the annotations, of one place, and of all places of a job together: with every character
escaped they still fit into one message of NATS (1 MiB)."""
_CUT = "…"
"""The end of a cut value. No number and no word of ours has it: a beginning must not be taken for the whole value."""
_NOT_OURS = ("kubectl.kubernetes.io/", "kueue.x-k8s.io/")

type Texts = Mapping[str, str]


class MetadataWords(msgspec.Struct, frozen=True, kw_only=True):
    """The labels and annotations of one place."""

    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    left_out: int = 0
    """Number of entries that were left out as too many; none of them asks for anything."""


NO_WORDS = MetadataWords()


def words_of(metadata: ObjectMeta) -> MetadataWords:
    """Labels and annotations that are kept of an object, or of a pod template."""
    labels, fewer_labels = _within_bounds(metadata.labels or {})
    annotations, fewer = _within_bounds(_worth_keeping(metadata.annotations or {}))
    if not labels and not annotations and not fewer and not fewer_labels:
        return NO_WORDS
    return MetadataWords(labels=labels, annotations=annotations, left_out=fewer + fewer_labels)


def merged(places: Iterable[MetadataWords]) -> MetadataWords:
    """Several places as one, within the same bounds; the first place that has a key wins."""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    left_out = 0
    for words in places:
        labels = words.labels | labels
        annotations = words.annotations | annotations
        left_out += words.left_out
    labels, fewer_labels = _within_bounds(labels)
    annotations, fewer = _within_bounds(annotations)
    return MetadataWords(labels=labels, annotations=annotations, left_out=left_out + fewer + fewer_labels)


def _worth_keeping(annotations: Texts) -> Texts:
    """The annotations, long values cut: they cannot be followed, and whoever wrote them must hear so."""
    return {
        key: value if len(value) <= LONGEST_VALUE else value[: LONGEST_VALUE - 1] + _CUT
        for key, value in annotations.items()
        if key.startswith(ASK_PREFIX) or (len(value) <= LONGEST_VALUE and not key.startswith(_NOT_OURS))
    }


def _within_bounds(texts: Texts) -> tuple[dict[str, str], int]:
    """The texts that fit, those that ask for a class and our own first, then by name; and how many do not."""
    if not texts:
        return {}, 0
    if sum(map(len, texts)) + sum(map(len, texts.values())) <= MOST_BYTES // 4:
        return dict(texts), 0  # a character has at most four bytes
    kept: dict[str, str] = {}
    room = MOST_BYTES
    for key in sorted(texts, key=lambda key: (not key.startswith((ASK_PREFIX, OWN_PREFIX)), key)):
        room -= len(key.encode()) + len(texts[key].encode())
        if room < 0:
            break
        kept[key] = texts[key]
    return kept, len(texts) - len(kept)
