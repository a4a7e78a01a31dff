"""Reasons in words: what a person reads about one job's position. Every number is one that the position was made from."""

from fairlead_contracts.base.figures import duration
from fairlead_contracts.base.instants import Moment, to_seconds
from fairlead_contracts.frontend.marks import GANG_FIT
from fairlead_contracts.messages.state import JobHolder, JobState, Outcome, Phase

_HOLDERS = {
    JobHolder.USER: "its user holds it",
    JobHolder.ADMIN: "an operator of the cluster holds it",
    JobHolder.DEPENDENCY: "another job has to end first",
}


def unranked(job: JobState) -> str:
    """The reason for which a job that has not started has no position; reads on from its name."""
    if job.array is not None and job.phase is Phase.WAITING:
        tasks = "1 task" if job.array.tasks == 1 else f"{job.array.tasks} tasks"
        return f"{tasks} of this array; they get positions as the tasks before them start"
    return f"has its quota; {job.unchecked}" if job.unchecked else _why_held(job)


def _why_held(job: JobState) -> str:
    why = job.held_by or "its frontend does not say why"
    if job.holder is not None:
        why = f"{_HOLDERS[job.holder]} ({job.held_by})" if job.held_by else _HOLDERS[job.holder]
    return why


def held(job: JobState) -> list[str]:
    """A sentence on a job that is queued but may not start."""
    why = _why_held(job)
    remedies = [f"{fault.field}: {fault.remedy}." for fault in job.faults]
    return [f"Held: {_sentence(why)} Until that changes, it has no position in the order.", *remedies]


def running(job: JobState) -> list[str]:
    """A sentence on a job that runs, or has its quota and may not start its pods yet."""
    if job.unchecked:
        return [
            f"It has its quota, which counts as its tenant's use, and no pods yet: {_sentence(job.unchecked)}"
        ]
    if job.began is None:
        return ["It runs, and counts as its tenant's use."]
    waited = duration(to_seconds(job.began - job.submitted))
    return [f"It started {waited} after it was submitted, and counts as its tenant's use while it runs."]


def unanswered(job: JobState) -> str:
    """A sentence on a job whose check nobody answers, with what an operator can do."""
    return (
        f"Nobody answers its check {GANG_FIT} now: no checker leads for cluster {job.cluster}. "
        f"An operator starts one, or lets it through unchecked by `fairlead watchdog --check {GANG_FIT}`."
    )


def passed_by(job: JobState) -> str:
    """A sentence on a waiting job that its frontend starts others past, whatever is free."""
    why = "No flavor of its queue takes it" if job.flavorless else "More than its turn and room is in its way"
    return f"{why} as things are: others start past it, and it counts nothing for its tenant's other jobs."


def left_alone(since: Moment, level: int, pool: str) -> list[str]:
    """The sentences on a job that is not steered, as somebody else kept changing its level: what stands, and what ends that."""
    who = "somebody else kept changing it. Fairlead cannot see who."
    stands = f"Level {level} stands, and the job starts by that, whatever its position here."
    return [
        f"The admitter has left its level alone since {since:%Y-%m-%d %H:%M:%S} UTC: {who}",
        f"{stands} Once nobody else sets its level, `fairlead resume {pool}` has the admitter write it again.",
    ]


def _sentence(told: str) -> str:
    return told if told.endswith((".", "…")) else f"{told}."


def ended(job: JobState) -> list[str]:
    """A sentence on a job that ended."""
    outcome = {Outcome.SUCCEEDED: "succeeded", Outcome.FAILED: "failed", Outcome.CANCELLED: "was cancelled"}
    found = "ended" if job.outcome is None else outcome[job.outcome]
    if job.began is None or job.ended is None:
        return [f"It {found}."]
    return [f"It {found} after it ran for {duration(to_seconds(job.ended - job.began))}."]


def nowhere(job: JobState) -> list[str]:
    """A sentence on a waiting job whose queue leads to no pool."""
    return [f"Its queue {job.queue!r} is not one that cluster {job.cluster!r} states, so it is in no order."]


def silent(shards: list[int]) -> str:
    """A sentence on shards whose owners did not answer."""
    names = ", ".join(str(shard) for shard in shards)
    return f"The owners of shards {names} did not answer in time: jobs of their tenants are not counted here."
