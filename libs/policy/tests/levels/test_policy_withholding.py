"""Withholding of levels, and operators' words: pure, the same for who writes and for who answers."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.frontend.capabilities import Capabilities, TieRule
from fairlead_contracts.frontend.shipped import KUEUE as KUEUE_ABLE
from fairlead_contracts.frontend.shipped import SLURM
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.messages.leave import Leave, LeverFound, LeverName, Revocation
from fairlead_contracts.messages.state import QueueState
from fairlead_policy.levels.operators import (
    ControlWord,
    OperatorWords,
    leave_of,
    lever_of,
    revocation_of,
    words_on,
)
from fairlead_policy.levels.withholding import (
    LevelFate,
    Withholding,
    judge_withholding,
    may_preempt,
    reclaimable,
)
from fairlead_testkit.inputs.builders import NOON, a_control, a_document, a_queue

KUEUE = a_queue(frontend="kueue", bands_by_class=True)
PREEMPTING = a_queue(name="hot", frontend="kueue", preemption={"reclaimWithinCohort": "LowerPriority"})
LEAVE = Leave(cluster="c1", lever="boost", at=NOON)


def judged(
    *queues: QueueState,
    leave: Leave | None = LEAVE,
    control: ControlWord | Mode = Mode.ACTIVE,
    preemption: str = "never",
    values: Mapping[str, int] | None = None,
    **more: Any,  # noqa: ANN401 # as `judge_withholding` has them
) -> Withholding:
    word = control if isinstance(control, ControlWord) else ControlWord(control)
    document = a_document(preemption=preemption)
    return judge_withholding(document, queues, leave, control=word, values=values or {}, **more)


@pytest.mark.parametrize(
    ("queues", "leave", "mode", "preemption", "why"),
    [
        ([a_queue()], None, Mode.ACTIVE, "never", ""),
        ([KUEUE, PREEMPTING], LEAVE, Mode.ACTIVE, "never", "queue hot has reclaimWithinCohort LowerPriority"),
        ([KUEUE, PREEMPTING], LEAVE, Mode.ACTIVE, "accept", ""),
        ([KUEUE, PREEMPTING], LEAVE, Mode.ACTIVE, "protect", ""),
        ([KUEUE, PREEMPTING], LEAVE, Mode.PAUSED, "accept", "paused"),
    ],
)
def test_one_reason_is_named_the_first_thing_to_see_to(
    queues: list[QueueState], leave: Leave | None, mode: Mode, preemption: str, why: str
) -> None:
    found = judged(*queues, leave=leave, control=mode, preemption=preemption).why
    assert (why in found) if why else not found


SETTINGS = [
    {setting: value}
    for setting, values in {
        "withinClusterQueue": ["LowerPriority", "LowerOrNewerEqualPriority"],
        "reclaimWithinCohort": ["LowerPriority"],
        "borrowWithinCohort": ["LowerPriority"],
        "unknownSetting": ["Never"],
    }.items()
    for value in values
]


@pytest.mark.parametrize("preemption", SETTINGS)
def test_levels_go_by_every_setting_by_which_one_could_stop_a_running_job(preemption: dict[str, str]) -> None:
    unsafe = a_queue(frontend="kueue", bands_by_class=True, preemption=preemption)
    found = judged(KUEUE, unsafe)
    assert (found.fate, found.unsafe, found.everywhere) == (LevelFate.GO, True, False)
    # Crossed classes stop nobody: what could goes first.
    assert judged(unsafe, values={"urgent": 5000, "approved": 9000}) == found


@pytest.mark.parametrize(
    ("leave", "revoked", "mode", "hours", "fate", "everywhere", "why"),
    [
        (LEAVE, False, Mode.ACTIVE, None, LevelFate.FOLLOW, False, ""),
        # Nobody took it back: it may have been lost, or was never there.
        (None, False, Mode.ACTIVE, None, LevelFate.STAND, False, "not cleared"),
        (None, False, Mode.RELEASED, None, LevelFate.STAND, False, "not cleared"),
        (None, True, Mode.ACTIVE, None, LevelFate.GO, True, "was taken back by ann"),
        (None, True, Mode.PAUSED, None, LevelFate.STAND, False, "paused"),
        (LEAVE, False, Mode.RELEASED, None, LevelFate.GO, True, "released"),
        (LEAVE, False, Mode.PAUSED, None, LevelFate.STAND, False, "paused"),
        (LEAVE, False, Mode.ACTIVE, 1, LevelFate.GO, True, "no longer reads boosts"),
        (LEAVE, False, Mode.PAUSED, 1, LevelFate.STAND, False, "paused"),
    ],
)
def test_levels_go_for_what_somebody_stated_and_stand_for_what_is_merely_not_known(
    leave: Leave | None,
    mode: Mode,
    hours: int | None,
    fate: LevelFate,
    why: str,
    *,
    revoked: bool,
    everywhere: bool,
) -> None:
    revocation = Revocation(cluster="c1", lever="boost", at=NOON, by="ann") if revoked else None
    lost = None
    if hours is not None:
        lost = LeverFound(cluster="c1", lever="priority", at=NOON + timedelta(hours=hours))
    found = judged(KUEUE, leave=leave, control=mode, found=lost, revocation=revocation)
    assert (found.fate, found.everywhere) == (fate, everywhere)
    assert (why in found.why) if why else not found.why


def test_who_pauses_an_unsafe_pool_hears_that_its_levels_could_stop_running_jobs() -> None:
    found = judged(PREEMPTING, control=Mode.PAUSED)
    assert (found.fate, found.unsafe) == (LevelFate.STAND, True)
    assert "they could stop running jobs: queue hot has reclaimWithinCohort LowerPriority" in found.why


def test_a_leave_taken_back_is_so_until_one_is_given_again_readable_or_not() -> None:
    words = OperatorWords()
    revocation = Revocation(cluster="c1", lever="boost", at=NOON)
    assert words.hear(revocation_of("c1"), to_json(revocation))
    assert words.revocation("c1") == revocation
    assert words.revocation("c2") is None
    words.hear(leave_of("c1"), to_json(LEAVE))
    assert words.revocation("c1") is None
    words.hear(leave_of("c1"), b"?")
    assert words.revocation("c1") is None
    words.hear(leave_of("c1"), None)
    assert words.revocation("c1") == revocation
    words.hear(revocation_of("c1"), b"?")
    assert words.revocation("c1") is None
    assert set(words.unreadable) == {revocation_of("c1")}


def test_a_dry_run_needs_no_leave_and_honours_everything_else() -> None:
    assert not judged(KUEUE, leave=None, dry_run=True).why
    assert judged(KUEUE, leave=None, control=Mode.PAUSED, dry_run=True).why
    assert judged(PREEMPTING, leave=None, dry_run=True).why


def test_classes_whose_values_cross_are_withheld_and_narrow_ones_are_not() -> None:
    assert not judged(KUEUE, values={"urgent": 600, "approved": 300}).why
    crossed = {"urgent": 5000, "approved": 9000}
    assert "class urgent has its floor at 5000" in judged(KUEUE, values=crossed).why
    assert not judged(a_queue(), leave=None, values=crossed).why


TURNED, NARROW = {"urgent": 5000, "approved": 9000}, {"urgent": 301, "approved": 300}


@pytest.mark.parametrize(
    ("frontend", "stated", "values", "told"),
    [
        ("kueue", None, TURNED, "give its WorkloadPriorityClass the higher value"),
        ("kueue", None, NARROW, "give them WorkloadPriorityClasses further apart"),
        ("other", None, TURNED, "give its priority class the higher value"),
        ("other", None, NARROW, "give them priority classes further apart"),
        ("kueue", Capabilities(priority_class="rank"), TURNED, "give its rank the higher value"),
        ("kueue", Capabilities(priority_class="rank"), NARROW, "give them ranks further apart"),
    ],
)
def test_what_mends_crossed_classes_is_told_in_the_frontends_own_word(
    frontend: str, stated: Capabilities | None, values: Mapping[str, int], told: str
) -> None:
    queue = a_queue(frontend=frontend, bands_by_class=True, capabilities=stated)
    assert told in judged(queue, values=values).why


@pytest.mark.parametrize(
    ("frontend", "stated", "told"),
    [
        ("kueue", KUEUE_ABLE, "`fairlead doctor` looks at it"),
        ("slurm", SLURM, "`fairlead slurm check` looks at it"),
        ("lsf", Capabilities(check_command="lsfcheck"), "`lsfcheck` looks at it"),
        ("lsf", Capabilities(check_command=""), "nobody gave leave to write there"),
        # As an older release states it:
        ("kueue", None, "`fairlead doctor` looks at it"),
        ("slurm", Capabilities(ties=TieRule.CHANCE), "`fairlead slurm check` looks at it"),
        ("lsf", None, "nobody gave leave to write there"),
    ],
)
def test_who_lacks_leave_is_sent_to_the_command_of_the_clusters_frontend(
    frontend: str, stated: Capabilities | None, told: str
) -> None:
    queue = a_queue(frontend=frontend, capabilities=stated)
    assert judged(queue, leave=None).why.startswith(f"cluster c1 is not cleared: {told}")


@pytest.mark.parametrize(
    ("stated", "preemption", "told"),
    [
        (None, {"reclaimWithinCohort": "LowerPriority"}, "; set it to Never in the queue, or `preemption: "),
        ({"mode": ("off",)}, {"mode": "cancel"}, "; set it to off in the queue, or `preemption: "),
        ({}, {"mode": "cancel"}, "; set `preemption: "),
    ],
)
def test_a_harmless_value_is_named_as_the_frontend_states_it(
    stated: Mapping[str, tuple[str, ...]] | None, preemption: dict[str, str], told: str
) -> None:
    queue = a_queue(preemption=preemption, capabilities=Capabilities(harmless_settings=stated))
    assert told in judged(queue).why


@pytest.mark.parametrize(
    ("given", "found", "hours", "withheld"),
    [
        ("boost", "priority", 1, True),
        ("boost", "priority", -1, False),  # the doctor looked later
        ("boost", "boost", 1, False),
        ("priority", "boost", 1, False),  # a priority counts whatever the gate
        ("priority", "priority", 1, False),
    ],
)
def test_boosts_that_kueue_does_not_read_any_more_are_withheld(
    given: LeverName, found: LeverName, hours: int, *, withheld: bool
) -> None:
    leave = msgspec.structs.replace(LEAVE, lever=given)
    seen = LeverFound(cluster="c1", lever=found, at=NOON + timedelta(hours=hours))
    words = OperatorWords()
    assert words.hear(lever_of("c1"), to_json(seen))
    assert words.lever_found("c1") == seen
    why = judged(KUEUE, leave=leave, found=words.lever_found("c1")).why
    assert ("no longer reads boosts" in why and "fairlead doctor" in why) == withheld
    words.hear(lever_of("c1"), None)
    assert words.lever_found("c1") is None


def test_only_settings_by_which_a_level_decides_preempt() -> None:
    assert may_preempt([KUEUE, PREEMPTING])
    assert not may_preempt([KUEUE, a_queue(preemption={"reclaimWithinCohort": "Any"})])


@pytest.mark.parametrize(
    ("strategies", "names"),
    [
        ({"a": "Any"}, []),
        ({"a": "Never", "b": "Never"}, []),
        ({"a": "Any", "b": "Never", "c": "Never"}, ["b", "c"]),  # no queue takes back from itself
        ({"a": "Any", "b": "Any"}, ["a", "b"]),
    ],
)
def test_what_runs_may_be_reclaimed_by_other_queues_alone(
    strategies: Mapping[str, str], names: list[str]
) -> None:
    queues = [
        a_queue(name=name, frontend="kueue", preemption={"reclaimWithinCohort": strategy})
        for name, strategy in strategies.items()
    ]
    assert reclaimable(queues) == names


def test_words_are_taken_back_and_unreadable_ones_stop() -> None:
    words = OperatorWords()
    [own, everybodys] = words_on("c1/gpu")
    assert words.hear(own, to_json(a_control(mode=Mode.PAUSED)))
    assert words.hear(everybodys, to_json(a_control(mode=Mode.RELEASED)))
    assert words.control("c1/gpu").mode is Mode.RELEASED
    assert words.control("c1/cpu").mode is Mode.RELEASED
    words.hear(everybodys, None)
    assert (words.control("c1/gpu").mode, words.control("c1/cpu").mode) == (Mode.PAUSED, Mode.ACTIVE)
    words.hear(everybodys, b"?")
    assert words.control("c1/cpu").mode is Mode.PAUSED
    assert set(words.unreadable) == {everybodys}


def test_a_word_says_who_when_and_why() -> None:
    words = OperatorWords()
    [own, everybodys] = words_on("c1/gpu")
    words.hear(own, to_json(a_control(mode=Mode.PAUSED, by="ann", why="disks are changed")))

    def why() -> str:
        return judged(KUEUE, control=words.control("c1/gpu")).why

    assert why() == (
        f"paused by ann since {NOON:%Y-%m-%d %H:%M} UTC (disks are changed): levels stay as they are. "
        "`fairlead resume POOL` has them written again"
    )
    words.hear(everybodys, to_json(a_control(mode=Mode.RELEASED, by="", why="")))
    assert why() == (
        f"all pools are released by an operator since {NOON:%Y-%m-%d %H:%M} UTC: no level of ours is left. "
        "`fairlead resume` has them written again"
    )
    words.hear(everybodys, b"?")
    words.hear(own, None)
    assert why().startswith("all pools are paused by an operator, in a word that cannot be read")


def test_a_leave_is_one_clusters_and_unreadable_it_is_none() -> None:
    words = OperatorWords()
    assert words.hear(leave_of("c1"), to_json(LEAVE))
    assert words.leave("c1") == LEAVE
    assert words.leave("c2") is None
    words.hear(leave_of("c1"), b"?")
    assert words.leave("c1") is None
    assert set(words.unreadable) == {leave_of("c1")}
    assert not words.hear(subjects.kv_subject(topology.POLICY, subjects.DOCUMENT_KEY), b"{}")
