"""`scontrol` as a person has it open: it answers question after question, for a tenth of what a command for each costs."""

import re
import subprocess
from collections.abc import Iterator
from typing import Self

from fairlead_testkit.slurmlab.errors import SlurmCommandError
from fairlead_testkit.slurmlab.lab import SlurmLab
from fairlead_testkit.slurmlab.packages import program

_END = "end-of-answer"
_JOB = re.compile(r"JobId=(\S+) .* JobState=(\S+) Reason=(\S+) ")
_NODE = re.compile(r"NodeName=(\S+) .* State=(\S+) .*?(?:Reason=(.*))?$")


class SlurmConsole:
    """An open scontrol of a lab's root, for one thread at a time. The lab runs, or is to run: it is asked anew each time."""

    def __init__(self, lab: SlurmLab) -> None:
        self._process = subprocess.Popen(  # noqa: S603 # Slurm's own command
            [program("scontrol"), "--oneliner"],
            env=lab.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def jobs(self) -> list[str]:
        """Number, state and reason of each job that Slurm knows, in Slurm's capitals: also of those that have ended.

        Raises:
            SlurmCommandError: slurmctld does not answer.
        """
        lines = list(self._asked("show jobs"))
        if not lines:  # without jobs it says so
            raise SlurmCommandError("scontrol show jobs: no answer")
        return [" ".join(found.groups()) for line in lines if (found := _JOB.match(line))]

    def nodes(self) -> list[str]:
        """Name, state and reason of each node: `n1 IDLE+DRAIN Duplicate jobid [root@…]`.

        Raises:
            SlurmCommandError: slurmctld does not answer.
        """
        found = [_NODE.match(line) for line in self._asked("show nodes")]
        told = [" ".join(word or "" for word in one.groups()) for one in found if one]
        if not told:
            raise SlurmCommandError("scontrol show nodes: no answer")
        return told

    def _asked(self, question: str) -> Iterator[str]:
        """The lines of an answer, without the prompts among them.

        Raises:
            SlurmCommandError: scontrol has ended.
        """
        asking, answer = self._process.stdin, self._process.stdout
        assert asking is not None  # noqa: S101 # both are pipes
        assert answer is not None  # noqa: S101 # as above
        try:
            asking.write(f"{question}\nshow hostnames {_END}\n")  # the second is answered without slurmctld
            asking.flush()
        except BrokenPipeError as error:
            raise SlurmCommandError("scontrol has ended") from error
        for line in answer:
            said = line.strip()
            if said == _END:
                return
            if said and not said.startswith("scontrol: "):
                yield said
        raise SlurmCommandError("scontrol has ended")
