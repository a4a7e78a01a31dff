"""Names of jobs in answers: as people call them; and none of others' jobs to a tenant, who hears whose they are."""

import msgspec

from fairlead_contracts.messages.decisions import EffectiveJob, Position
from fairlead_contracts.messages.explanations import Neighbour, WhatIf
from fairlead_contracts.messages.questions import Explanation
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


_SOME_JOB = "another job"


def concealed_explanation(fact: Explanation, tenant: str) -> Explanation:
    """The explanation without the names of others' jobs."""
    return msgspec.structs.replace(
        fact,
        position=None if fact.position is None else concealed_position(fact.position),
        what_if=None if fact.what_if is None else concealed(fact.what_if, tenant),
    )


def concealed(found: WhatIf, tenant: str) -> WhatIf:
    """The what-if without the names of others' jobs: a tenant hears whose they are, and counts of them."""
    return msgspec.structs.replace(
        found,
        nearest=[_unnamed(one, tenant) for one in found.nearest],
        counterfactuals=[
            msgspec.structs.replace(one, passed="", passed_id="") if one.passed_tenant != tenant else one
            for one in found.counterfactuals
        ],
    )


def concealed_position(position: Position) -> Position:
    """The position without others' names: what holds it back below a tenant may be a sibling's job."""
    if not position.top:
        return position
    return msgspec.structs.replace(
        position,
        effective=_unnamed_effective_job(position.effective),
        effective_late=_unnamed_effective_job(position.effective_late),
        # A tenant's own level holds its own jobs alone.
        within=[
            one
            if one.tenant == position.tenant
            else msgspec.structs.replace(one, effective=_unnamed_effective_job(one.effective))
            for one in position.within
        ],
    )


def _unnamed_effective_job(effective_job: EffectiveJob | None) -> EffectiveJob | None:
    return None if effective_job is None else msgspec.structs.replace(effective_job, uid="", id="")


def _unnamed(one: Neighbour, tenant: str) -> Neighbour:
    if one.own_side and one.own_effective:
        one = msgspec.structs.replace(one, own_effective=_SOME_JOB)
    if one.effective and (one.side or one.tenant != tenant):
        one = msgspec.structs.replace(one, effective=_SOME_JOB)
    return one if one.tenant == tenant else msgspec.structs.replace(one, uid="", scope="", id="")
