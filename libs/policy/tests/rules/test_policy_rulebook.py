"""The policy document applied to facts."""

from dataclasses import replace
from fractions import Fraction

import msgspec
import pytest

from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.base.instants import DAY
from fairlead_contracts.frontend.templates import JobTemplate
from fairlead_contracts.messages.state import JobState
from fairlead_contracts.messages.submissions import Submission
from fairlead_contracts.policyfile.document import Aging, Grant, Match, PolicyDocument, Pool, Tenant
from fairlead_policy.rules.rulebook import GrantedClass, Rulebook
from fairlead_testkit.inputs.builders import a_job

DOCUMENT = PolicyDocument(
    aging=Aging(entitlement_per_day=0.1, cap_days=0.5),
    resource_weights={"gpu": 1.5, "memory": 0.0},
    pools=[Pool(name="training", members=["east/main", "west/main"])],
    tenants=[
        Tenant(name="vision", weight=0.3),
        Tenant(name="speech", weight=2.0, match=Match(scopes=["asr", "tts"])),
        Tenant(name="night", weight=1.0, match=Match(queues=["night"], labels={"shift": "night"})),
        Tenant(name="west-only", weight=4.0, pool="training", match=Match(clusters=["west"])),
    ],
    grants=[
        Grant(tenant="vision", classes=["approved"]),
        Grant(tenant="vision", classes=["urgent"], job="rescue"),
    ],
)
BOOK = Rulebook(DOCUMENT, revision=7)

JOB = a_job("train", uid="uid-1", cluster="east", scope="vision", queue="day", demand={"gpu": 1000})


def stated(**changed: object) -> JobState:
    return msgspec.structs.replace(JOB, **changed)


def test_pools_of_several_clusters_are_joined_and_others_stand_alone() -> None:
    assert BOOK.pool_of("east", "main") == BOOK.pool_of("west", "main") == "training"
    assert BOOK.pool_of("east", "other/pool") == "east/other/pool"
    assert BOOK.members_of("training") == [("east", "main"), ("west", "main")]
    assert BOOK.members_of("east/other/pool") == [("east", "other/pool")]


@pytest.mark.parametrize(
    ("job", "tenant"),
    [
        (stated(), "vision"),
        (stated(scope="asr"), "speech"),
        (stated(scope="x", queue="night", labels={"shift": "night", "more": "yes"}), "night"),
        (stated(scope="x", queue="night", labels={"shift": "day"}), "x"),
        (stated(scope="x", cluster="west"), "west-only"),
        (stated(cluster="west"), "vision"),
        (stated(scope="nobody"), "nobody"),
    ],
)
def test_a_job_is_the_first_tenants_that_matches_it(job: JobState, tenant: str) -> None:
    assert BOOK.tenant_of(job) == tenant


def test_a_scope_cannot_take_the_name_and_weight_of_a_tenant_that_does_not_match_it() -> None:
    tenant = BOOK.tenant_of(stated(scope="speech"))
    assert tenant == "speech (unlisted)"
    assert tenant not in {listed.name for listed in BOOK.document.tenants}
    assert BOOK.weight_of(tenant) == 0


def test_classes_are_granted_not_taken() -> None:
    assert BOOK.class_of(stated(), "vision") == GrantedClass("normal", None)
    assert BOOK.class_of(stated(requested_class="normal"), "speech") == GrantedClass("normal", None)
    assert BOOK.class_of(stated(requested_class="approved"), "vision") == GrantedClass("approved", None)
    assert BOOK.class_of(stated(requested_class="urgent"), "vision") == GrantedClass("normal", "urgent")
    assert BOOK.class_of(stated(requested_class="urgent", id="rescue"), "vision") == GrantedClass(
        "urgent", None
    )
    assert BOOK.class_of(stated(requested_class="urgent", uid="rescue"), "vision") == GrantedClass(
        "urgent", None
    )
    assert BOOK.class_of(stated(requested_class="approved"), "speech") == GrantedClass("normal", "approved")
    assert BOOK.class_of(stated(requested_class="made up"), "vision") == GrantedClass("normal", "made up")


def test_weights_and_rates_are_the_decimals_of_the_document() -> None:
    rules = BOOK.pool_rules("training", {"gpu": 8000, "cpu": 64_000, "memory": 2**40})
    assert rules.weights["vision"] == Fraction(3, 10)
    assert rules.rate == Fraction(1, 10) / DAY
    assert rules.cap == DAY // 2
    assert rules.resources == ("cpu", "gpu")
    assert rules.unit_shares == (Fraction(1, 64_000), Fraction(3, 2) / 8000)
    assert rules.weight_of("stranger") == 0


def test_a_tenant_of_one_pool_has_no_weight_in_another() -> None:
    assert BOOK.pool_rules("training", {}).weights["west-only"] == 4
    assert BOOK.pool_rules("east/other", {}).weights["west-only"] == 0
    assert BOOK.weight_of("west-only") == 4


def test_strangers_have_the_weight_that_the_policy_gives_them() -> None:
    book = Rulebook(msgspec.structs.replace(DOCUMENT, unlisted_weight=0.5), 1)
    assert book.weight_of("stranger") == Fraction(1, 2)
    assert book.pool_rules("p", {}).weight_of("stranger") == Fraction(1, 2)


def test_shards_are_the_same_on_every_machine() -> None:
    # Values of this function once in use: changing it would move every tenant to another owner.
    assert [BOOK.shard_of(name) for name in ("vision", "speech", "night", "é", "a b")] == [7, 4, 11, 15, 8]
    assert {BOOK.shard_of(f"t{number}") for number in range(500)} == set(range(16))


CAPACITY = {"gpu": 8000, "cpu": 64_000}
SUBMISSION = Submission(id="s1", tenant="vision", demand={"gpu": 1000})


def refusal(book: Rulebook = BOOK, **changed: object) -> FieldError:
    submission = msgspec.structs.replace(SUBMISSION, **changed)
    with pytest.raises(FieldError) as caught:
        book.check_submission(submission, capacity=CAPACITY)
    return caught.value


def test_a_good_submission_passes() -> None:
    BOOK.check_submission(SUBMISSION, capacity=CAPACITY)
    asked = msgspec.structs.replace(SUBMISSION, job_class="approved", queue="day", demand=CAPACITY)
    BOOK.check_submission(asked, capacity=CAPACITY)
    rescue = msgspec.structs.replace(SUBMISSION, id="rescue", job_class="urgent")
    BOOK.check_submission(rescue, capacity=CAPACITY)
    open_book = Rulebook(msgspec.structs.replace(DOCUMENT, unlisted_weight=1.0), 1)
    open_book.check_submission(msgspec.structs.replace(SUBMISSION, tenant="eve"), capacity=CAPACITY)


def test_a_submission_is_told_apart_by_its_local_queue_and_annotations_too() -> None:
    by_door = Tenant(name="door", match=Match(local_queues=["ml/gpu"]))
    by_word = Tenant(name="word", match=Match(annotations={"example.com/team": "word"}))
    book = Rulebook(PolicyDocument(tenants=[by_door, by_word]), 1)
    plain = msgspec.structs.replace(SUBMISSION, tenant="ml")
    book.check_submission(plain, capacity=CAPACITY, local_queue="gpu")
    template = JobTemplate(image="busybox", annotations={"example.com/team": "word"})
    book.check_submission(msgspec.structs.replace(plain, template=template), capacity=CAPACITY)
    with pytest.raises(FieldError, match="tenant"):
        book.check_submission(plain, capacity=CAPACITY, local_queue="cpu")


def test_a_submission_counts_for_whom_its_job_will_count() -> None:
    """A scope reaches its tenant through match rules: by its name, its queue and labels, or its cluster."""
    by_scope = msgspec.structs.replace(SUBMISSION, tenant="asr")
    BOOK.check_submission(by_scope, capacity=CAPACITY, cluster="east", queue="day")
    by_queue = msgspec.structs.replace(SUBMISSION, tenant="eve", labels={"shift": "night"})
    BOOK.check_submission(by_queue, capacity=CAPACITY, cluster="east", queue="night")
    by_cluster = msgspec.structs.replace(SUBMISSION, tenant="eve")
    BOOK.check_submission(by_cluster, capacity=CAPACITY, cluster="west", queue="day")
    for away in (("east", "night"), ("east", None), ("", None)):
        with pytest.raises(FieldError, match="not in the policy"):
            BOOK.check_submission(by_cluster, capacity=CAPACITY, cluster=away[0], queue=away[1])
    # The name of a tenant is no way round its match rules, and its grants hold for whoever matches it alone.
    assert refusal(tenant="speech").field == "tenant"
    granted = msgspec.structs.replace(DOCUMENT, grants=[Grant(tenant="speech", classes=["approved"])])
    asked = msgspec.structs.replace(by_scope, job_class="approved")
    Rulebook(granted, 1).check_submission(asked, capacity=CAPACITY)
    with pytest.raises(FieldError, match="not granted to tenant 'speech'"):
        BOOK.check_submission(asked, capacity=CAPACITY)


def test_each_refusal_names_the_field_the_value_and_the_way_out() -> None:
    unknown = refusal(tenant="eve")
    assert (unknown.field, unknown.value) == ("tenant", "eve")
    missing = refusal(job_class="now")
    assert (missing.field, missing.value) == ("class", "now")
    assert "urgent, approved, normal" in missing.reason
    ungranted = refusal(job_class="urgent")
    assert ungranted.field == "class"
    assert "grant the tenant the class in the policy" in ungranted.reason
    resource = refusal(demand={"gpus": 1000})
    assert resource.field == "demand.gpus"
    assert "cpu, gpu" in resource.reason
    size = refusal(demand={"gpu": 8500})
    assert (size.field, size.value) == ("demand.gpu", "8500m")
    assert "more than the whole pool has, 8" in size.reason


def test_rules_are_equal_where_they_say_the_same() -> None:
    first, second = (
        BOOK.pool_rules("training", capacity) for capacity in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert first == second
    assert replace(first, cap=1) != second


def test_a_demand_is_the_same_to_the_byte_however_it_was_written() -> None:
    first, second = (
        BOOK.waiting_job(stated(demand=demand), apart=False)
        for demand in ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    )
    assert msgspec.msgpack.encode(first) == msgspec.msgpack.encode(second)


def test_a_demand_that_cannot_be_sent_is_bounded() -> None:
    found = BOOK.waiting_job(stated(demand={"a": 10**30, "b": -(2**70), "c": 7}), apart=False).demand
    assert found == {"a": 2**62, "b": 0, "c": 7}
    assert msgspec.msgpack.encode(found)
