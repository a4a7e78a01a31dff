"""Submitting a batch job as another Unix user: what is asked, a helper that may do it, and whoever asks it.

The helper runs as root, does nothing else, and takes no command and no option: it makes sbatch's words itself, of fields that
were checked, and runs sbatch as the user of the account. Nobody but root chooses which user that is.
"""

from fairlead_slurm.submitting.batch_job import BatchJob, SubmissionMark, submission_mark
from fairlead_slurm.submitting.client import SubmittingClient

__all__ = ["BatchJob", "SubmissionMark", "SubmittingClient", "submission_mark"]
