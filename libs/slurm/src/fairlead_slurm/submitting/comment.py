"""The words that a job's comment begins with, where Fairlead made it: whose submission it is. Pure.

Slurm keeps a comment as long as the job; so a job that was made is found again, whoever was killed in between.
"""

import msgspec

_SUBMISSION, _DIGEST, _TRACE, _IMAGE = "fairlead", "digest", "traceparent", "image"
_SHOWN = 16
"""Characters of a digest."""


class SubmissionMark(msgspec.Struct, frozen=True, kw_only=True):
    """The submission that a job was made for."""

    submission: str
    digest: str
    traceparent: str | None = None

    def comment(self, image: str = "") -> str:
        """The comment that the job carries."""
        words = {_SUBMISSION: self.submission, _DIGEST: self.digest[:_SHOWN]}
        if self.traceparent is not None:
            words[_TRACE] = self.traceparent
        if image:
            words[_IMAGE] = image
        return " ".join(f"{key}={value}" for key, value in words.items())

    def is_of(self, digest: str) -> bool:
        """Whether it is the submission of this digest."""
        return self.digest == digest[:_SHOWN]


def submission_mark(comment: str) -> SubmissionMark | None:
    """The mark of a job that Fairlead made; anybody may write such a comment on jobs of their own."""
    words = dict(word.partition("=")[::2] for word in comment.split())
    if not comment.startswith(f"{_SUBMISSION}=") or _DIGEST not in words:
        return None
    return SubmissionMark(
        submission=words[_SUBMISSION], digest=words[_DIGEST], traceparent=words.get(_TRACE) or None
    )
