"""A tenant's view of others: whose jobs stand before its own, not their names."""

import msgspec

from fairlead_contracts.messages.decisions import EffectiveJob, SiblingStanding
from fairlead_contracts.messages.explanations import Neighbour, WhatIf
from fairlead_policy.explain.reasons import Wording
from fairlead_policy.rules.pool_rules import PoolRules
from fairlead_scorer.query.names import concealed, concealed_position
from fairlead_testkit.inputs.builders import a_position


def test_the_job_of_a_sibling_that_holds_one_back_is_not_named_to_its_tenant() -> None:
    effective_job = EffectiveJob(
        uid="secret", id="secret", job_class="normal", dominant="cpu", use=1, submitted=0
    )
    own, above = (
        SiblingStanding(tenant=name, dominant="", use=0, tag=0, effective=effective_job)
        for name in ("team", "division")
    )
    position = a_position(
        tenant="team",
        top="org",
        own_rank=2,
        effective=effective_job,
        effective_late=effective_job,
        within=[own, above],
    )
    hidden = concealed_position(position)
    assert hidden.within[0] == own, "its own tenant's job"
    assert b"secret" not in msgspec.json.encode(msgspec.structs.replace(hidden, within=hidden.within[1:]))
    wording = Wording(PoolRules(capacity={"cpu": 1000}, classes=("normal",)), {}, 0)
    assert any("org serves another job first" in line for line in wording.reasons(hidden))
    alone = a_position(tenant="team", own_rank=1, effective=effective_job)
    assert concealed_position(alone) == alone
    told = Neighbour(
        uid="u",
        scope="s",
        id="x",
        tenant="other",
        job_class="normal",
        term="share",
        own_side="org",
        own_effective="secret",
        effective="secret",
    )
    [kept] = concealed(WhatIf(nearest=[told]), "team").nearest
    assert (kept.own_effective, kept.effective, kept.id) == ("another job", "another job", "")
    [mine] = concealed(
        WhatIf(nearest=[msgspec.structs.replace(told, tenant="team", own_side="")]), "team"
    ).nearest
    assert (mine.own_effective, mine.effective, mine.id) == ("secret", "secret", "x")
