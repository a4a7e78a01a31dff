"""A batch job as the helper is asked for it, and the words that sbatch is called with. Pure.

A job's comment begins with words that say whose submission it is, where Fairlead made it. Slurm keeps a comment
as long as the job; so a job that was made is found again, whoever was killed in between.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated

import msgspec

_SUBMISSION, _DIGEST, _TRACE, _IMAGE = "fairlead", "digest", "traceparent", "image"
_SHOWN = 16
"""Characters of a digest that a comment holds."""


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


type BatchJobName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}$")]
type Text = Annotated[str, msgspec.Meta(pattern=r"^[^\x00-\x1f\x7f]{0,1024}$")]
type Count = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
MOST_BYTES = 4 * 1024 * 1024
"""Bytes of a request, at most: Slurm's own bound of a script (slurm.conf, max_script_size)."""


class BatchJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job for sbatch to make; its amounts are those of one task."""

    account: BatchJobName
    name: BatchJobName
    comment: Text
    script: str
    partition: BatchJobName | None = None
    qos: BatchJobName | None = None
    tasks: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 1
    cpus: Count = 1
    memory_mib: Count = 0
    gpus: Count = 0
    minutes: Count | None = None
    working_dir: Text | None = None


def sbatch_words(job: BatchJob, *, home: str = "/", output: str = "/dev/null") -> list[str]:
    """The arguments of sbatch, each option one word with its value: no value can become an option.

    Args:
        job: the job, whose values their types have checked.
        home: folder where the job runs, unless it names one.
        output: file of the job's output, in sbatch's patterns.
    """
    one = job.tasks == 1
    options = {
        "account": job.account,
        "job-name": job.name,
        "comment": job.comment,
        "partition": job.partition,
        "qos": job.qos,
        "ntasks": str(job.tasks),
        "nodes": "1" if one else None,
        "cpus-per-task": str(max(1, job.cpus)),
        # Of one task the amounts are its node's; of several Slurm packs as many on a node as fit.
        "mem": f"{job.memory_mib}M" if one and job.memory_mib else None,
        "mem-per-cpu": f"{-(-job.memory_mib // max(1, job.cpus))}M" if not one and job.memory_mib else None,
        "gres": f"gpu:{job.gpus}" if one and job.gpus else None,
        "gpus-per-task": str(job.gpus) if not one and job.gpus else None,
        "time": None if job.minutes is None else str(max(1, job.minutes)),
        "chdir": job.working_dir or home,
        "output": output,
    }
    return ["--parsable", *(f"--{name}={value}" for name, value in options.items() if value is not None)]


def script_of(command: Sequence[str], env: Mapping[str, str]) -> str:
    """A script that runs the command, whatever its words hold.

    Its first line is a command, so that no later one, of a word with newlines in it, is read as an #SBATCH line.
    """
    exports = [f"export {name}={shlex.quote(value)}" for name, value in env.items()]
    return "\n".join(["#!/bin/sh", ":", *exports, f"exec {shlex.join(command)}", ""])
