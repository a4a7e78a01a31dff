"""The settings of a scorer."""

from typing import Annotated

import msgspec

from fairlead_runtime.settings import ServiceSettings

type Positive = Annotated[float, msgspec.Meta(gt=0)]


class ScorerSettings(ServiceSettings, frozen=True, kw_only=True):
    """Settings of the scorer."""

    pace_seconds: Annotated[float, msgspec.Meta(ge=0)] = 0.02
    """The shortest time between two decisions of one shard; changes within it become one decision. The first change
    after a quiet time is decided at once. Longer, four seconds at most, while a cluster starts jobs faster than levels
    reach them."""
    step_down_seconds: Positive = 0.5
    """Seconds for which a shard that was lost to another scorer is left alone before it is claimed again."""
    answer_seconds: Positive = 1.0
    """Seconds for which a question waits for shards' owners; the silent ones are named in the answer."""
    route: bool = True
    """Whether this replica may take submissions for cluster `any`."""
    tenant_submits_per_second: Positive = 1000.0
    """Submissions for cluster `any` a second that one tenant may make in the long run; more are refused."""
    tenant_submits_burst: Annotated[int, msgspec.Meta(ge=1)] = 100_000
    """Submissions for cluster `any` that one tenant may make at once after a rest."""
    tenant_asks_per_second: Positive = 100.0
    """Questions a second that one tenant may ask this replica in the long run, ten times as many after a rest; more are
    refused unread."""
