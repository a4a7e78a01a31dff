"""`fairlead slurm`: what an operator and a user of Slurm want to know beforehand."""

from pathlib import Path

from cyclopts import App

from fairlead_cli.options import CHECK, Output, Reach, Underway
from fairlead_cli.slurm.flags import HookFlags, ScriptFlags, SlurmCheckFlags

slurm = App(name="slurm", help="Check a Slurm cluster, and batch scripts.", group=CHECK)


@slurm.command
def check(
    *, flags: SlurmCheckFlags = SlurmCheckFlags(), output: Output = "table", reach: Reach = Reach()
) -> Underway:
    """Look a Slurm cluster over before Fairlead writes to it: what is wrong, why it matters, what mends it.

    Asks the running slurmctld, and changes nothing there. `fairlead up --slurm-conf` looks at the same and writes nothing where
    there is an error. Where services were started one by one, --cluster gives the leave that `fairlead up` gives.

    Ends with 0 where nothing is open but what is good to know, 1 with warnings, 2 with errors, 3 where it could not look.

    Args:
        output: Words (wide: the same); json, yaml; name: the names of open findings.
    """
    from fairlead_cli.errors import InputError
    from fairlead_cli.slurm.examining import check, revoke

    if not flags.revoke:
        return check(flags, reach.nats, output)
    if flags.cluster is None:
        raise InputError("--revoke: of which cluster? Name it with --cluster")
    return revoke(flags.cluster, flags.by, reach.nats)


@slurm.command
def validate(script: Path, /, *, flags: ScriptFlags = ScriptFlags(), output: Output = "table") -> Underway:
    """Say what Slurm would refuse a batch script for, or never start it for, before it is submitted.

    Looks at the script's form and its #SBATCH lines, and, where slurmctld answers, at partition, time limit, size, account and the
    limits of account, user and QOS. Where jobs run as pods it also looks at the words of the comment, at names that Kubernetes
    would not take, and asks the registry whether the image is there. What stands on sbatch's own command line is not looked at.

    Ends with 0 where nothing is found against it, 1 where it would be refused, 2 where a file cannot be read.

    Args:
        script: Path of the batch script.
        output: Words (wide: the same); json, yaml; name: the lines that are refused, by number.
    """
    from fairlead_cli.slurm.validating import validate

    return validate(script, flags, output)


@slurm.command
def install(folder: Path, /, *, flags: HookFlags = HookFlags()) -> int:
    """Write the hooks of a partition whose jobs run as pods of Kubernetes, and say which lines slurm.conf lacks for them.

    Writes into the folder and nowhere else. Written again, the files are replaced.

    Ends with 0, or with 1 where a slurm.conf was given that lacks lines, 2 where a path or name is one that Slurm could not read.

    Args:
        folder: Where the hooks will lie, on slurmctld's host and on every node of the partition: an absolute path
            without blanks.
    """
    from fairlead_cli.slurm.installing import install

    return install(folder, flags)
