"""`python -m fairlead_testkit.slurmlab up|down|status`: what the targets lab-slurm and lab-down run."""

import sys

from fairlead_testkit.lab_words import run_word, say
from fairlead_testkit.slurmlab import detached


def main(arguments: list[str] | None = None) -> int:
    """Run one word; the exit code is 1 where it failed, and for `status` where no lab is up."""
    words = {"up": _up, "down": _down, "status": _status, "serve": _serve}
    return run_word("python -m fairlead_testkit.slurmlab", __doc__, words, arguments)


def _up() -> int:
    found, was_up = detached.up()
    say(f"The Slurm lab {'is up already' if was_up else 'is up'}.\n\n{_described(found)}")
    return 0


def _down() -> int:
    say("The Slurm lab has ended; nothing of it runs." if detached.down() else "No Slurm lab is up.")
    return 0


def _status() -> int:
    found = detached.running()
    say("No Slurm lab is up." if found is None else _described(found))
    return 1 if found is None else 0


def _serve() -> int:
    detached.serve()
    return 0


def _described(found: detached.DetachedSlurmLab) -> str:
    parts = ", ".join(f"{name} {pid}" for name, pid in found.parts.items())
    accounting = (
        "MariaDB and slurmdbd"
        if found.accounting
        else "none: that needs root; accounts are whatever a job says, and only your own jobs run"
    )
    example = found.accounts[0]
    return f"""\
  processes    {parts}
  logs         {found.logs}
  nodes        n1 to n4 with 16 CPUs, 64 GB and 8 GPUs each, all of them on this machine; partition `gpu`
  accounts     {", ".join(found.accounts)}
  accounting   {accounting}

Use it:
  export SLURM_CONF={found.conf}
  sbatch --account={example} --gres=gpu:2 --output=/dev/null --wrap='sleep 60'
  squeue --sort=-p

Order it fairly:
  fairlead up --slurm-conf $SLURM_CONF

End it: make lab-down"""


if __name__ == "__main__":
    sys.exit(main())
