"""A batch script, read as sbatch 22.05 reads it: its form, its `#SBATCH` lines, and what is wrong with them. Pure."""

import re
import shlex
from collections.abc import Iterator

import msgspec

from fairlead_slurm.batch.options import BatchOption, OptionWord, Remark, options
from fairlead_slurm.batch.values import is_taken_all_the_same, problem

_MARK = "#SBATCH"
_NEXT_PART = ("hetjob", "packjob")
_ALMOST = re.compile(r"\s*#\s*SBATCH\s+-", re.IGNORECASE)


class BatchScript(msgspec.Struct, frozen=True, kw_only=True):
    """A batch script as sbatch reads it: its options, and what is wrong with them."""

    parts: tuple[tuple[BatchOption, ...], ...]
    """The options of the job, in their order; of a heterogeneous job those of each part."""
    remarks: tuple[Remark, ...]
    size: int = 0
    """Length of the script, in bytes."""


def read(content: bytes) -> BatchScript:
    """Read a script; what is wrong with it is told, never raised."""
    refused = _form(content)
    if refused is not None:
        return BatchScript(parts=(), remarks=(refused,))
    parts, remarks = _words(content.decode(errors="replace").split("\n"))
    found = []
    for words in parts:
        part, said = options(words)
        found.append(tuple(part))
        remarks += [*said, *_values(part)]
    return BatchScript(
        parts=tuple(found), remarks=tuple(sorted(remarks, key=lambda one: one.line)), size=len(content)
    )


def _form(content: bytes) -> Remark | None:
    if not content.strip():
        return Remark(line=0, says="the script is empty")
    if b"\0" in content:
        return Remark(line=0, says="the script has a NUL character", mend="Is it a text file?")
    if not content.startswith(b"#!"):
        return Remark(
            line=1,
            says="the first line does not name an interpreter",
            mend="Begin with #!/bin/sh or #!/bin/bash.",
        )
    if b"\r\n" in content:
        return Remark(line=1, says="lines end as on Windows (\\r\\n)", mend="dos2unix SCRIPT")
    return None


def _words(lines: list[str]) -> tuple[list[list[OptionWord]], list[Remark]]:
    """The words of the lines that sbatch reads, by part, and remarks on lines that it passes over."""
    parts: list[list[OptionWord]] = [[]]
    remarks: list[Remark] = []
    command = 0
    for number, line in enumerate(lines, start=1):
        if line.startswith(_MARK):
            if command:
                says = f"Slurm ignores this line: it stands behind the first command (line {command})"
                remarks.append(Remark(line=number, says=says, refused=False, mend="Move it to the top."))
                continue
            try:
                _add(parts, number, shlex.split(line.removeprefix(_MARK), comments=True))
            except ValueError:
                remarks.append(Remark(line=number, says="a quote is not closed"))
        elif not command and _ALMOST.match(line):
            says = f"Slurm ignores this line: one that it reads begins with {_MARK}"
            remarks.append(Remark(line=number, says=says, refused=False))
        elif not command and line.strip() and not line.lstrip().startswith("#"):
            command = number
    return parts, remarks


def _add(parts: list[list[OptionWord]], number: int, words: list[str]) -> None:
    if any(word in _NEXT_PART for word in words):
        parts.append([])
        return
    parts[-1] += [OptionWord(number, word) for word in words]


def _values(found: list[BatchOption]) -> Iterator[Remark]:
    for option in found:
        why = problem(option.name, option.value)
        if why:
            yield Remark(
                line=option.line,
                says=f"--{option.name}={option.value}: {option.value!r} {why}"
                if option.value
                else f"--{option.name} {why}",
                refused=not is_taken_all_the_same(option.name, option.value),
            )
