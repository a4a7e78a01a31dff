"""Submissions on a real Kubernetes with a real Kueue: each becomes one job that runs, or one clear refusal."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import HealthCheck, given, reject, settings

from fairlead_admitter.errors import FrontendDownError
from fairlead_admitter.frontends.kueue.jobs import KueueJobs, ServiceAccounts
from fairlead_admitter.frontends.kueue.manifests import (
    ManifestTerms,
    job_manifest,
    pod_manifests,
    pytorch_manifest,
)
from fairlead_admitter.frontends.kueue.rights import FreshRefusals
from fairlead_admitter.intake.creation import CreatedJob, Creation, JobOrder, JobRefusedError, Removal
from fairlead_admitter.intake.entry_queue import entry_queue_for
from fairlead_bus import Bus
from fairlead_bus.server.provision import provision
from fairlead_contracts import topology
from fairlead_contracts.base.errors import FieldError
from fairlead_contracts.messages.submissions import (
    Accepted,
    AnyAnswer,
    Cancellation,
    Ended,
    Refused,
    Started,
    read_submission,
)
from fairlead_kube.client import connect
from fairlead_kube.settings import KubeSettings
from fairlead_testkit import NatsServer, ServiceProcess, eventually
from fairlead_testkit.by_hand.bus_harness import sample
from fairlead_testkit.by_hand.fake_cluster import CLUSTER, RunAdmitter
from fairlead_testkit.by_hand.people import submit
from fairlead_testkit.inputs.builders import (
    NOW,
    a_body,
    a_started_event,
    an_ended_event,
)
from fairlead_testkit.kubelab import ADMITTER, BATCH_JOB, RUN_SECONDS, KubeLab, KubeObject, LabOptions, things
from fairlead_testkit.kueue.kueue_team import Team
from fairlead_testkit.pytest_plugin.kubelab_fixtures import LabFactory

pytestmark = [pytest.mark.kube, pytest.mark.integration, pytest.mark.timeout(300)]


TEST_ANNOTATIONS = ["fairlead.test/"]
ACCOUNTS = ServiceAccounts(submit="fairlead-submitter", pods="default")


@pytest.fixture
def team(kube_lab: KubeLab) -> Team:
    team = Team(kube_lab)
    team.open()
    return team


def kube_settings(lab: KubeLab) -> dict[str, object]:
    access = {"frontend": "kueue", "kubeconfig": str(lab.kubeconfig(ADMITTER))}
    return {**access, "template_annotation_prefixes": TEST_ANNOTATIONS}


def a_template(kind: str = "job", seconds: float = 0.3, **fields: object) -> dict[str, object]:
    return {"image": "busybox", "kind": kind, "annotations": {RUN_SECONDS: f"{seconds:g}"}, **fields}


def an_order(team: str, **changes: object) -> JobOrder:
    body = {"id": "x", "pods": 2, "demand": {"cpu": 2}, "template": a_template()} | changes
    submission = read_submission(a_body(**body), tenant=team, fallback_id="seq-1")
    return JobOrder(submission=submission, submitted=NOW, job_class="normal")


@pytest.fixture
async def jobs(team: Team) -> AsyncIterator[KueueJobs]:
    async with creating(team.lab, team) as jobs:
        yield jobs


@asynccontextmanager
async def creating(lab: KubeLab, *teams: Team) -> AsyncIterator[KueueJobs]:
    access = KubeSettings(kubeconfig=str(lab.kubeconfig(ADMITTER)), write_qps=500, write_burst=500)
    entries = {team.name: {"main": team.queue} for team in teams}
    async with connect(access, user_agent="fairlead-admitter") as client:
        yield KueueJobs(
            client,
            entry=lambda scope, wanted: entry_queue_for(entries.get(scope, {}), wanted),
            classes=lambda: (),
            refusals=FreshRefusals(0.0),
            annotation_prefixes=TEST_ANNOTATIONS,
            accounts=ACCOUNTS,
        )


async def refusal(jobs: KueueJobs, order: JobOrder) -> FieldError:
    with pytest.raises(JobRefusedError) as caught:
        await jobs.create(order)
    return caught.value.problem


@pytest.mark.parametrize("kind", ["job", "pod-group", "pytorch-job"])
async def test_a_cancellation_is_for_submissions_before_it(jobs: KueueJobs, team: Team, kind: str) -> None:
    await jobs.create(an_order(team.name, template=a_template(kind, 600)))
    wanted = Cancellation(team.name, "x")
    assert await jobs.cancel(wanted, NOW - 1) is Removal.LATER
    assert await jobs.cancel(wanted, NOW) is Removal.DONE
    await eventually(lambda: not team.jobs() and not team.pods(), 60, what="all of it is gone")


# --- from NATS to the end of the job


async def test_a_submission_runs_to_its_end_and_its_sender_hears_of_it(
    bus: Bus, team: Team, answers: list[AnyAnswer], run_admitter: RunAdmitter
) -> None:
    cluster = await team.become_known(bus)
    async with run_admitter(**kube_settings(team.lab)):
        await submit(bus, a_body(id="Train", template=a_template(), pods=1), tenant=team.name)
        await submit(bus, a_body(id="none"), tenant=team.name)
        await submit(bus, a_body(id="lost", queue="lost", template=a_template()), tenant=team.name)
        await eventually(lambda: len(answers) == 3, 60)
        by_id = {answer.id: answer for answer in answers}
        accepted, refused, lost = by_id["Train"], by_id["none"], by_id["lost"]
        assert isinstance(accepted, Accepted)
        assert (accepted.job, accepted.queue, accepted.job_class) == ("train", team.queue, "normal")
        assert isinstance(refused, Refused)
        assert (refused.field, refused.value) == ("template", "null")
        assert isinstance(lost, Refused)
        assert lost.field == "queue"
        assert "main" in lost.reason
        await eventually(lambda: things.condition(team.jobs()[0], "Complete"), 60)
        (workload,) = team.workloads()
        named = {
            "cluster": CLUSTER,
            "scope": team.name,
            "tenant": team.name,
            "job": workload["metadata"]["name"],
            "uid": workload["metadata"]["uid"],
            "submission": workload["spec"]["podSets"][0]["template"]["metadata"]["annotations"][
                "fairlead.dev/submission"
            ],
        }
        subject = f"fairlead.v1.event.{team.name}.{CLUSTER}.{named['job']}"
        for event in (
            a_started_event(id="s", **named),
            a_started_event(id="again", **named),
            an_ended_event(id="e", **named),
        ):
            await cluster.bus.publish(subject, msgspec.json.encode(event))
        await eventually(lambda: len(answers) == 5, 60)
        assert [type(answer) for answer in answers if answer.id == "Train"] == [Accepted, Started, Ended]


async def test_killed_in_the_middle_of_a_flood_each_submission_is_one_job(
    bus: Bus,
    team: Team,
    answers: list[AnyAnswer],
    nats_server: NatsServer,
    tmp_path: Path,
) -> None:
    plan = topology.topology([CLUSTER])
    durables = [msgspec.structs.replace(spec, ack_wait_seconds=2.0) for spec in plan.durables]
    await provision(bus, msgspec.structs.replace(plan, durables=durables))
    await team.become_known(bus)
    count, groups = 40, 4
    given = kube_settings(team.lab) | {"cluster": CLUSTER, "nats_url": nats_server.url}
    # The first is still at it when it is killed, however late that is: it takes half a minute.
    slow, fast = ({"kube_create_qps": qps, "kube_create_burst": 10} for qps in (2, 40))
    with ServiceProcess("admitter", tmp_path, given | slow, name="first") as first:
        await first.ready()
        for number in range(groups):
            body = a_body(id=f"g{number}", pods=5, demand={"cpu": 1}, template=a_template("pod-group", 60))
            await submit(bus, body, tenant=team.name)
        for number in range(count):
            await submit(bus, a_body(id=f"x{number}", template=a_template(seconds=60)), tenant=team.name)
        await eventually(lambda: len(team.pods()) + len(team.jobs()) >= 15, 60)
        first.kill()
    assert len(team.jobs()) < count
    with ServiceProcess("admitter", tmp_path, given | fast, name="second") as second:
        await second.ready()
        await eventually(lambda: len({answer.id for answer in answers}) == count + groups, 60)
        info = f"CONSUMER.INFO.{topology.SUBMIT}.{topology.submit_durable(CLUSTER)}"

        async def none_left() -> bool:
            found = msgspec.json.decode(await bus.jetstream.call(info))
            return bool(found["num_pending"] == 0 and found["num_ack_pending"] == 0)

        await eventually(none_left, 60)
        assert await second.stop() == 0
    assert {type(answer) for answer in answers} == {Accepted}
    assert sorted(job["metadata"]["name"] for job in team.jobs()) == sorted(f"x{n}" for n in range(count))
    members = [pod for pod in team.pods() if pod["metadata"]["name"].startswith("g")]
    assert len(members) == 5 * groups


# --- the same order, again and otherwise


@pytest.mark.parametrize("kind", ["job", "pod-group", "pytorch-job"])
async def test_an_order_is_one_admitted_job_however_often_it_is_carried_out(
    jobs: KueueJobs, team: Team, kind: str
) -> None:
    order = an_order(team.name, template=a_template(kind))
    outcomes = [(await jobs.create(order)).outcome for _ in range(3)]
    assert outcomes == [Creation.CREATED, Creation.EXISTS, Creation.EXISTS]
    await eventually(lambda: [things.condition(one, "Admitted") for one in team.workloads()] == [True], 60)
    if kind != "pytorch-job":  # no operator makes its pods here
        await eventually(lambda: things.condition(team.workloads()[0], "Finished"), 60)
        assert len(team.pods()) == 2
    assert (await jobs.create(order)).outcome is Creation.EXISTS
    other = an_order(team.name, template=a_template(kind), demand={"cpu": 4})
    assert (await jobs.create(other)).outcome is Creation.CONFLICT


@pytest.mark.parametrize(
    ("first", "second"), [("job", "pod-group"), ("pod-group", "job"), ("pytorch-job", "job")]
)
async def test_an_id_of_another_kind_is_another_body(
    jobs: KueueJobs, team: Team, first: str, second: str
) -> None:
    assert (await jobs.create(an_order(team.name, template=a_template(first)))).outcome is Creation.CREATED
    assert (await jobs.create(an_order(team.name, template=a_template(second)))).outcome is Creation.CONFLICT


async def test_a_job_of_somebody_else_is_left_alone(jobs: KueueJobs, team: Team) -> None:
    team.lab.api.create(things.job("x", team.name, "main", {"cpu": 1}))
    assert (await jobs.create(an_order(team.name))).outcome is Creation.CONFLICT


async def test_a_group_that_was_left_half_made_is_completed(jobs: KueueJobs, team: Team) -> None:
    order = an_order(team.name, pods=4, demand={"cpu": 4}, template=a_template("pod-group"))
    for pod in pod_manifests(order, ManifestTerms(local_queue="main", annotation_prefixes=TEST_ANNOTATIONS))[
        :2
    ]:
        team.lab.api.create({"apiVersion": "v1", "kind": "Pod", **pod})
    assert (await jobs.create(order)).outcome is Creation.EXISTS
    assert len(team.pods()) == 4
    await eventually(lambda: [things.condition(one, "Finished") for one in team.workloads()] == [True], 60)


async def test_a_group_that_cannot_be_whole_is_taken_away(jobs: KueueJobs, team: Team) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": team.name},
        "spec": {"hard": {"pods": "2"}},
    }
    team.lab.api.create(quota)
    # Nobody counts quotas here: the first count is ours, the API server goes on from there.
    count = {"status": {"hard": {"pods": "2"}, "used": {"pods": "0"}}}
    path = f"/api/v1/namespaces/{team.name}/resourcequotas/few"
    team.lab.api.patch(f"{path}/status", count)

    problem = None
    while problem is None:  # until the API server has seen the quota, groups get in
        order = an_order(
            team.name,
            id=f"y{uuid4().hex[:6]}",
            pods=4,
            demand={"cpu": 4},
            template=a_template("pod-group", 60),
        )
        try:
            await jobs.create(order)
        except JobRefusedError as error:
            problem = error.problem
    assert "quota" in problem.reason
    # Of groups that got in before, some may wait for quota.
    await eventually(
        lambda: not [pod for pod in team.pods() if pod["metadata"]["name"].startswith(order.submission.id)],
        60,
    )


async def test_a_group_whose_name_a_pod_of_somebody_else_has_is_refused(jobs: KueueJobs, team: Team) -> None:
    pod = {"containers": [{"name": "c", "image": "busybox"}]}
    team.lab.api.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x-1", "namespace": team.name},
            "spec": pod,
        }
    )
    problem = await refusal(jobs, an_order(team.name, template=a_template("pod-group")))
    assert (problem.field, problem.value) == ("id", "x")
    await eventually(lambda: [pod["metadata"]["name"] for pod in team.pods()] == ["x-1"], 60)


# --- refusals


async def test_a_namespace_that_is_not_open_says_what_is_missing(kube_lab: KubeLab) -> None:
    shut = Team(kube_lab)
    async with creating(kube_lab, shut) as jobs:
        problem = await refusal(jobs, an_order(shut.name))
    assert problem.field == "tenant"
    assert "may not act as service account 'fairlead-submitter'" in problem.reason


@pytest.mark.parametrize("opened", ["not at all", "to look alone"])
async def test_a_namespace_without_the_rights_is_refused_after_the_stated_time_and_is_nobody_elses_trouble(
    bus: Bus, kube_lab: KubeLab, answers: list[AnyAnswer], run_admitter: RunAdmitter, opened: str
) -> None:
    shut = Team(kube_lab)
    if opened == "to look alone":
        shut.open()
        look = [
            {"apiGroups": [group], "resources": [plural], "verbs": ["get", "list"]}
            for group, plural in (("batch", "jobs"), ("", "pods"), ("kubeflow.org", "pytorchjobs"))
        ]
        roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{shut.name}/roles"
        shut.lab.api.patch(f"{roles}/fairlead-submitter", {"rules": look})
    await shut.become_known(bus)
    settings = kube_settings(shut.lab) | {"kube_believe_forbidden_seconds": 2.5}
    async with run_admitter(**settings) as admitter:
        await submit(bus, a_body(id="x", template=a_template()), tenant=shut.name)
        await eventually(
            lambda: sample(admitter, "creations_failed_total") > 1, 60, what="it is held and tried again"
        )
        assert shut.name in admitter.readiness.details().get("intake", "")
        assert "frontend" not in admitter.readiness.reasons()
        await eventually(lambda: answers, 60, what="it is refused")
        [refused] = answers
        assert isinstance(refused, Refused)
        assert refused.field == "tenant"
        assert f"`kubectl apply -n {shut.name} -k deploy/kustomize/tenant`" in refused.reason
        # The next one need not wait: the refusal stands.
        before = sample(admitter, "creations_failed_total")
        await submit(bus, a_body(id="y", template=a_template()), tenant=shut.name)
        await eventually(lambda: len(answers) == 2, 60, what="so is the next one")
        assert sample(admitter, "creations_failed_total") == before
        assert "frontend" not in admitter.readiness.reasons()


async def test_a_missing_right_of_the_account_is_named(jobs: KueueJobs, team: Team) -> None:
    roles = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{team.name}/roles"
    few = [{"apiGroups": ["batch"], "resources": ["jobs"], "verbs": ["create", "get"]}]
    team.lab.api.patch(f"{roles}/fairlead-submitter", {"rules": few})

    async def named() -> bool:
        order = an_order(team.name, id=f"p{uuid4().hex[:6]}", template=a_template("pytorch-job"))
        try:
            await jobs.create(order)
        except JobRefusedError as error:
            return error.problem.field == "tenant" and "may not create pytorchjobs.kubeflow.org" in str(error)
        return False

    await eventually(named, 60)
    assert (await jobs.create(an_order(team.name))).outcome is Creation.CREATED


async def test_what_the_api_server_finds_wrong_is_told_under_the_submissions_own_field(
    jobs: KueueJobs, team: Team
) -> None:
    problem = await refusal(jobs, an_order(team.name, demand={"hugepages-2Mi": 1 << 22}))
    assert problem.field == "demand"
    assert "containers[0].resources" in problem.reason


async def test_a_tenant_without_a_door_has_no_queue(jobs: KueueJobs, team: Team) -> None:
    assert (await jobs.create(an_order("elsewhere"))).outcome is Creation.NO_QUEUE
    assert (await jobs.create(an_order(team.name, queue="lost"))).outcome is Creation.NO_QUEUE
    assert await jobs.create(an_order(team.name, queue=team.queue)) == CreatedJob(
        outcome=Creation.CREATED, queue=team.queue, job="x"
    )


async def test_where_kueue_sees_jobs_alone_other_kinds_are_refused_and_its_outage_refuses_nothing(
    kube_labs: LabFactory,
) -> None:
    alone = LabOptions(frameworks=(BATCH_JOB,), pytorchjobs=False, nodepools=False, workers=False, nodes=())
    lab = await asyncio.to_thread(kube_labs, alone)
    team = Team(lab)
    team.open()
    async with creating(lab, team) as jobs:
        for kind in ("pod-group", "pytorch-job"):
            problem = await refusal(jobs, an_order(team.name, template=a_template(kind)))
            assert problem.field == "template.kind"
        assert team.pods() == []
        lab.process("kueue").kill()
        with pytest.raises(FrontendDownError):
            await jobs.create(an_order(team.name))
        assert team.jobs() == []
        await asyncio.to_thread(lab.restart_kueue)
        assert (await jobs.create(an_order(team.name))).outcome is Creation.CREATED


# --- whatever is accepted is an object that the API server takes

_NAMES = st.from_regex(r"[a-zA-Z]([a-zA-Z0-9-]{0,50}[a-zA-Z0-9])?", fullmatch=True)
_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40)
_KEYS = st.from_regex(r"([a-z0-9.-]{1,20}/)?[A-Za-z0-9._-]{1,20}", fullmatch=True)
_BODIES = st.fixed_dictionaries(
    {
        "id": _NAMES,
        "pods": st.integers(1, 3),
        "demand": st.fixed_dictionaries(
            {"cpu": st.integers(1, 9).map(lambda n: f"{n * 6}m")},
            optional={
                "memory": st.integers(1, 2**20).map(lambda n: n * 6),
                "nvidia.com/gpu": st.integers(1, 2).map(lambda n: n * 6),
                "example.com/odd-Thing_1": st.just(6),
            },
        ),
        "run_limit_seconds": st.none() | st.floats(0.001, 366 * 86_400.0),
        "class_": st.none() | st.sampled_from(["urgent", "a.b_c"]),
        "labels": st.dictionaries(_KEYS, st.from_regex(r"[A-Za-z0-9._-]{0,20}", fullmatch=True), max_size=3),
        "template": st.fixed_dictionaries(
            {"image": st.from_regex(r"[a-z0-9./:@-]{1,30}", fullmatch=True)},
            optional={
                "kind": st.sampled_from(["job", "pod-group", "pytorch-job"]),
                "command": st.lists(_TEXT, max_size=3),
                "args": st.lists(_TEXT, max_size=3),
                "env": st.dictionaries(
                    st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True), _TEXT, max_size=3
                ),
                "working_dir": _TEXT.map(lambda text: "/" + text),
                "node_selector": st.dictionaries(
                    _KEYS, st.from_regex(r"[A-Za-z0-9._-]{0,20}", fullmatch=True), max_size=2
                ),
                "annotations": st.dictionaries(_KEYS, _TEXT, max_size=3),
            },
        ),
    }
)


def objects_of(body: dict[str, object]) -> list[KubeObject]:
    submission = read_submission(a_body(**body), tenant="default", fallback_id="f")
    annotations = submission.template.annotations if submission.template is not None else {}
    prefixes = [f"{key.partition('/')[0]}/" for key in annotations]
    terms = ManifestTerms(local_queue="main", classes=("urgent",), annotation_prefixes=prefixes)
    order = JobOrder(submission=submission, submitted=NOW, job_class=submission.job_class or "normal")
    match submission.template.kind if submission.template is not None else "":
        case "pytorch-job":
            return [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", **pytorch_manifest(order, terms)}]
        case "pod-group":
            return [{"apiVersion": "v1", "kind": "Pod", **pod} for pod in pod_manifests(order, terms)]
        case _:
            return [{"apiVersion": "batch/v1", "kind": "Job", **job_manifest(order, terms)}]


@given(body=_BODIES)
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
def test_whatever_becomes_an_object_is_taken_by_the_api_server(
    kube_lab: KubeLab, body: dict[str, object]
) -> None:
    try:
        found = objects_of(body)
    except FieldError:
        reject()
    kube_lab.api.create(found[0], dryRun="All")
