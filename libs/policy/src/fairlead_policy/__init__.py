"""The pure core that decides: rules from the policy document, the order of waiting jobs, and levels from an order.

No I/O, clock, randomness or logging: facts and an instant go in, the same facts give the same bytes. The order is
that of weighted Dominant Resource Fairness with aging, exact: integers and fractions decide wherever floats could
be wrong.

Where to find what: `rulebook` applies the document to facts, `rules` are what one pool is scored by. `order` is one pool,
made of a `lane` for each tenant, and of a `family` for each tree of them: `merging` makes the sequences of its nodes, and
`sequence` is that of its top. `columns` take in many jobs at once, `scoring` gives start tags, `ranking` sorts exactly. A flat
pool that is not kept is put in order at once: `whole`, and its places by `whole_places`, as columns by `plain_places`.
Those of trees are made from what `gathering` finds, by `gathered`, as columns by `tree_places`; `nearest` gives their figures, `worth`
what these are made of. A `view` puts tenants side by side; `places`, by their exact `terms`, are what others see, and merge shards; `standing` is
what a tenant has. `flips` foretells when time alone changes the order. `levels` turns an order into writes, by `ties`,
within the `bands` of the classes that make up a pool's `segments`, and where `preemption` allows; `free_quota` says who would fit now, `adherence` how well admissions follow the order. `snapshots` and
`snapshot_levels` do all of that with one document, `stating` makes it from stated facts; `reserve` promises a start to the first job that does not fit, by its `shadow`, in
the words of `reservation`; `past` is decayed use; `reasons` puts a place in words, with
`held_back` on what holds it back beside a share. `prospects` says what
would move a job: by what stands `ahead` and takes its `turns`, by its `makeup`, by `moves` solved exactly or tried (`supposing`), and
`foretelling` puts that in words, with `neighbours` on those right before it and `bound` on how long later jobs may pass it.
`aging_worth` says what the rate of aging means in a pool.

Two packages stand beside the order, to be imported by their own names: `fit` says whether a gang fits nodes and where,
`fractions` reads GPU fractions after HAMi. `card_shares` charges those to a pool, `walking` places jobs along an order,
`sizing` asks whether stated nodes could hold a stated job at all.
"""

from fairlead_policy.adherence import Adherence, Holdings, Look, Passed
from fairlead_policy.aging_worth import aging_in_words, worth_in_words
from fairlead_policy.ahead import join_around
from fairlead_policy.bands import NarrowBand, class_bands, narrow_bands
from fairlead_policy.explained import ExplainedJob, explain_in_snapshot
from fairlead_policy.figures import duration, percent
from fairlead_policy.flips import next_flip_of
from fairlead_policy.foretelling import prospects_in_words
from fairlead_policy.free_quota import FreeQuota
from fairlead_policy.jobs import Queue, WaitingJob
from fairlead_policy.levels import Band, LabelledJob, LevelPlan, plan_levels
from fairlead_policy.neighbours import cause_in_words
from fairlead_policy.operators import (
    ControlWord,
    OperatorWords,
    clearance_of,
    is_word,
    lever_of,
    revocation_of,
    words_on,
)
from fairlead_policy.order import PoolOrder
from fairlead_policy.past import Decay, PastUse, RunKey, tick_of
from fairlead_policy.places import merge_places, sort_key
from fairlead_policy.plain_places import PlaceColumns
from fairlead_policy.preemption import preempting_settings
from fairlead_policy.prospects import (
    NEIGHBOURS,
    Found,
    ended_of,
    higher_classes,
    neighbour_of,
    prospects_in,
    prospects_of,
    targets_of,
)
from fairlead_policy.reasons import Wording, class_in_words, terms_in_words
from fairlead_policy.reservation import (
    Breach,
    Cause,
    InPlace,
    Obstacle,
    Pass,
    Promise,
    Reservation,
    Scene,
    Standing,
    Timing,
    Waiting,
    Withdrawal,
)
from fairlead_policy.reserve import recalled, reserve, reserves, timing_of
from fairlead_policy.rulebook import Granted, Rulebook
from fairlead_policy.rules import ClassMode, PoolRules
from fairlead_policy.saturation import Part, Room, Saturation, whole_room
from fairlead_policy.segments import (
    Changes,
    Segment,
    TakesLevels,
    common_band,
    in_safe_order,
    segments_by,
    segments_of,
)
from fairlead_policy.shadow import Run, Shadow, fits, free_of, shadow_of
from fairlead_policy.shares import quotient_of, quotients_of
from fairlead_policy.sizing import StatedNodes, crowded_out, outgrown
from fairlead_policy.snapshot_levels import (
    PLAIN_BAND,
    PlannedLevels,
    Steering,
    plan_snapshot_levels,
    steering_of,
)
from fairlead_policy.snapshots import OrderedPool, order_snapshot, policy_of
from fairlead_policy.stated_cards import PoolCards, same_cards
from fairlead_policy.stating import cards_by_pool, part_capacity, rooms_of, snapshot_of
from fairlead_policy.ties import Tie, TieIndex, tied_within
from fairlead_policy.walking import Answer, JobFit, NodeFit, Walk, walk
from fairlead_policy.withholding import (
    Fate,
    Withholding,
    judge_withholding,
    may_preempt,
    unsteered_level,
    why_ineffective,
    why_uncleared,
)

__all__ = [
    "NEIGHBOURS",
    "PLAIN_BAND",
    "Adherence",
    "Answer",
    "Band",
    "Breach",
    "Cause",
    "Changes",
    "ClassMode",
    "ControlWord",
    "Decay",
    "ExplainedJob",
    "Fate",
    "Found",
    "FreeQuota",
    "Granted",
    "Holdings",
    "InPlace",
    "JobFit",
    "LabelledJob",
    "LevelPlan",
    "Look",
    "NarrowBand",
    "NodeFit",
    "Obstacle",
    "OperatorWords",
    "OrderedPool",
    "Part",
    "Pass",
    "Passed",
    "PastUse",
    "PlaceColumns",
    "PlannedLevels",
    "PoolCards",
    "PoolOrder",
    "PoolRules",
    "Promise",
    "Queue",
    "Reservation",
    "Room",
    "Rulebook",
    "Run",
    "RunKey",
    "Saturation",
    "Scene",
    "Segment",
    "Shadow",
    "Standing",
    "StatedNodes",
    "Steering",
    "TakesLevels",
    "Tie",
    "TieIndex",
    "Timing",
    "Waiting",
    "WaitingJob",
    "Walk",
    "Withdrawal",
    "Withholding",
    "Wording",
    "aging_in_words",
    "cards_by_pool",
    "cause_in_words",
    "class_bands",
    "class_in_words",
    "clearance_of",
    "common_band",
    "crowded_out",
    "duration",
    "ended_of",
    "explain_in_snapshot",
    "fits",
    "free_of",
    "higher_classes",
    "in_safe_order",
    "is_word",
    "join_around",
    "judge_withholding",
    "lever_of",
    "may_preempt",
    "merge_places",
    "narrow_bands",
    "neighbour_of",
    "next_flip_of",
    "order_snapshot",
    "outgrown",
    "part_capacity",
    "percent",
    "plan_levels",
    "plan_snapshot_levels",
    "policy_of",
    "preempting_settings",
    "prospects_in",
    "prospects_in_words",
    "prospects_of",
    "quotient_of",
    "quotients_of",
    "recalled",
    "reserve",
    "reserves",
    "revocation_of",
    "rooms_of",
    "same_cards",
    "segments_by",
    "segments_of",
    "shadow_of",
    "snapshot_of",
    "sort_key",
    "steering_of",
    "targets_of",
    "terms_in_words",
    "tick_of",
    "tied_within",
    "timing_of",
    "unsteered_level",
    "walk",
    "whole_room",
    "why_ineffective",
    "why_uncleared",
    "words_on",
    "worth_in_words",
]
