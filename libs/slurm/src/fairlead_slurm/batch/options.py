"""sbatch's options: their names, and how `#SBATCH` words become options and values, as getopt_long does it."""

import difflib
from collections.abc import Sequence

import msgspec

from fairlead_slurm.batch.names import KNOWN, LATER, MAY_HAVE_VALUE, SAME, SHORT, WITH_VALUE, WITHOUT_VALUE

_SHOWN = 4
"""Number of options that a remark lists, at most, where a shortened name may be any of several."""


class OptionWord(msgspec.Struct, frozen=True):
    """A word of a `#SBATCH` line, with that line's number."""

    line: int
    text: str


class BatchOption(msgspec.Struct, frozen=True, kw_only=True):
    """An option of sbatch's as a script gives it."""

    line: int
    name: str
    """The option's long name, without dashes."""
    value: str
    """The option's value; empty where it has none."""


class Remark(msgspec.Struct, frozen=True, kw_only=True):
    """A remark on a batch script: something that Slurm would refuse, or a warning."""

    line: int
    """Number of the line, from 1; 0 for the script as a whole."""
    says: str
    refused: bool = True
    """Whether Slurm refuses the script for it, or never starts its job; else it is a warning."""
    mend: str = ""


def options(words: Sequence[OptionWord]) -> tuple[list[BatchOption], list[Remark]]:
    """The options in the words of all lines, and what sbatch would not take. A value may be the next line's first word."""
    reader = _OptionReader(words)
    reader.read()
    return reader.found, reader.remarks


class _OptionReader:
    """A reader that goes over the words once."""

    def __init__(self, words: Sequence[OptionWord]) -> None:
        self._words = list(words)
        self.found: list[BatchOption] = []
        self.remarks: list[Remark] = []

    def read(self) -> None:
        """Read all words into `found` and `remarks`."""
        while self._words:
            word = self._words.pop(0)
            if word.text.startswith("--") and word.text != "--":
                self._long(word)
            elif word.text.startswith("-") and word.text not in ("-", "--"):
                self._short(word)
            else:
                self._refuse(
                    word,
                    f"{word.text!r} is not an option",
                    "Options begin with a dash; quote values with blanks.",
                )

    def _long(self, word: OptionWord) -> None:
        given, equals, value = word.text[2:].partition("=")
        fitting = [given] if given in KNOWN else sorted(name for name in KNOWN if name.startswith(given))
        if given in LATER:
            self.remarks.append(
                Remark(
                    line=word.line,
                    says=f"--{given} is unknown to Slurm 22.05, later ones have it",
                    refused=False,
                )
            )
        elif not fitting:
            near = difflib.get_close_matches(given, sorted(KNOWN), n=1)
            self._refuse(
                word, f"sbatch has no option --{given}", f"Did you mean --{near[0]}?" if near else ""
            )
        elif len(fitting) > 1:
            some = ", ".join(f"--{name}" for name in fitting[:_SHOWN])
            self._refuse(
                word, f"--{given} may be any of {some}" + (" and more" if len(fitting) > _SHOWN else ""), ""
            )
        elif fitting[0] in WITHOUT_VALUE and equals:
            self._refuse(word, f"--{fitting[0]} takes no value", f"Write --{fitting[0]} alone.")
        elif fitting[0] in WITH_VALUE and not equals:
            self._with_next(word, fitting[0], f"--{fitting[0]}")
        else:
            self._add(word, fitting[0], value)

    def _short(self, word: OptionWord) -> None:
        letters = word.text[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            name = SHORT.get(letter)
            if name is None:
                self._refuse(word, f"sbatch has no option -{letter}", "")
                return
            if name in WITHOUT_VALUE:
                self._add(word, name, "")
            elif letters or name in MAY_HAVE_VALUE:
                self._add(word, name, letters)
                return
            else:
                self._with_next(word, name, f"-{letter}")

    def _with_next(self, word: OptionWord, name: str, shown: str) -> None:
        if self._words:
            self._add(word, name, self._words.pop(0).text)
        else:
            self._refuse(word, f"{shown} needs a value", "")

    def _add(self, word: OptionWord, name: str, value: str) -> None:
        self.found.append(BatchOption(line=word.line, name=SAME.get(name, name), value=value))

    def _refuse(self, word: OptionWord, says: str, mend: str) -> None:
        self.remarks.append(Remark(line=word.line, says=says, mend=mend))
