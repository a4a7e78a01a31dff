"""`python -m fairlead_testkit.slurmlab up|down|status`: what the targets lab-slurm and lab-down run."""

import sys

from fairlead_testkit.slurmlab.detached import SlurmLabSupervision

if __name__ == "__main__":
    sys.exit(SlurmLabSupervision().main())
