"""What to tell of a job that nobody knows."""

from collections.abc import Sequence


def what_is_known(job: str, near: Sequence[str]) -> str:
    """The jobs that may be meant, or else where jobs are listed, and why one may not be among them.

    Args:
        job: the name that nobody knows.
        near: jobs whose names begin so, with their scopes.
    """
    if near:
        return f"Names that begin so: {', '.join(near)}."
    of_all = "`fairlead queue` lists those that wait; refused ones were never jobs, and ended ones are forgotten after a while."
    array, _, task = job.rpartition("/")[2].partition("_")
    if array.isdecimal() and task.isdecimal():
        return f"Of an array the first waiting tasks alone have a place, and those behind them are not known one by one. {of_all}"
    return (
        f"{of_all} On Kubernetes a job without the label kueue.x-k8s.io/queue-name is none of Kueue's, so nobody tells of it: "
        "`fairlead doctor` lists such jobs."
    )
