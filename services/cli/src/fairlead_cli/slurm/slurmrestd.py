"""What stands against asking a slurmrestd. Pure; says nothing where none is to be asked."""

from collections.abc import Iterator

from fairlead_cli.findings import Finding, error, info, warning
from fairlead_cli.slurm.survey import SlurmSurvey

_POLL_SECONDS = 2.0
"""Between two readings, by default (`poll_seconds`)."""
_NAME = "slurmrestd"


def slurmrestd(survey: SlurmSurvey) -> Iterator[Finding]:
    """All findings."""
    found = survey.rest
    if found is None:
        return
    if found.trouble:
        yield error(
            _NAME,
            found.address,
            f"slurmrestd cannot be asked: {found.trouble}",
            why="The bridge would know of no job.",
            mend="Leave FAIRLEAD_SLURMRESTD out, and the bridge asks by Slurm's commands; or see docs/slurm.md, slurmrestd.",
        )
        return
    if found.seconds > _POLL_SECONDS / 2:
        yield warning(
            _NAME,
            found.address,
            f"One reading of the queue by slurmrestd takes {found.seconds:.1f} s.",
            why="It is read every two seconds, and slurmrestd is busy as long each time.",
            mend="Leave FAIRLEAD_SLURMRESTD out: squeue takes some 5 % of that.",
        )
    if found.tasks_cut:
        yield info(
            _NAME,
            found.address,
            "slurmrestd does not name all tasks of a long array.",
            why="Where that is so, the bridge reads the queue by squeue.",
            mend="SLURM_BITSTR_LEN=0   # in slurmrestd's environment",
        )


def how_asked(survey: SlurmSurvey) -> str:
    """What is said where nothing is found."""
    found = survey.rest
    if found is None:
        return "Slurm is asked by its commands"
    by = (
        f"by {found.levels}"
        if found.levels
        else "by scontrol: slurmrestd offers no version that is known to do it"
    )
    return f"read by {found.reads}; SiteFactor is set {by}"
