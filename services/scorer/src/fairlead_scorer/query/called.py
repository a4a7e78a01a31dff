"""Positions named as people call their jobs: by what a job was made for, and not by its frontend's own id."""

import msgspec

from fairlead_contracts.messages.decisions import EffectiveJob, Position
from fairlead_scorer.state.cluster_cache import ClusterCache


def called(position: Position, cache: ClusterCache) -> Position:
    """The position with its own job, and those that hold it back, named as people call them."""
    own = _name(position, cache)
    effective_jobs = [
        position.effective,
        position.effective_late,
        *(one.effective for one in position.within),
    ]
    if own == position.id and not any(effective_jobs):
        return position
    return msgspec.structs.replace(
        position,
        id=own,
        effective=_called_effective_job(position.effective, cache),
        effective_late=_called_effective_job(position.effective_late, cache),
        within=[
            msgspec.structs.replace(one, effective=_called_effective_job(one.effective, cache))
            for one in position.within
        ],
    )


def _called_effective_job(effective_job: EffectiveJob | None, cache: ClusterCache) -> EffectiveJob | None:
    if effective_job is None:
        return None
    return msgspec.structs.replace(effective_job, id=_name(effective_job, cache))


def _name(one: Position | EffectiveJob, cache: ClusterCache) -> str:
    job = cache.job(one.uid)
    return one.id if job is None else job.name
