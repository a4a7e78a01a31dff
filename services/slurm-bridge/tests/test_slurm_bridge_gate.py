"""The capacity that is left, against a count by hand; and whether Slurm still stands behind an attempt."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_contracts.frontend.observed import ObservedPods
from fairlead_kube.kinds.pods import Container, Pod, PodSpec, ResourceRequirements
from fairlead_kube.reflector import Key
from fairlead_policy.fit.shapes import FitNode
from fairlead_slurm_bridge.gate.attempts import Attempt, attempt_of
from fairlead_slurm_bridge.gate.capacity import CapacityCache, NoRoom, PodDemand, RoomKept
from fairlead_slurm_bridge.gate.kube_facts import pod_ask
from fairlead_slurm_bridge.pods.state_timer import RESTART_SECONDS, StateTimer
from fairlead_slurm_bridge.pods.verdicts import is_over, is_put_off
from fairlead_testkit.inputs.slurm_builders import a_slurm_job

GPU = "nvidia.com/gpu"


def ask(gpus: int) -> ObservedPods:
    amounts: dict[str, str | int | float] = {"cpu": "1", GPU: str(gpus)}
    resources = ResourceRequirements(requests=amounts, limits=amounts)
    return pod_ask(Pod(spec=PodSpec(containers=[Container(name="job", resources=resources)])))


def node(name: str, gpus: int) -> FitNode:
    return FitNode(name=name, free={"cpu": 64_000, GPU: gpus * 1000, "pods": 110_000})


def use(name: str, gpus: int) -> PodDemand:
    return PodDemand(node=name, demand={"cpu": 1000, GPU: gpus * 1000, "pods": 1000})


def key(number: int) -> Key:
    return Key("slurm", f"pod-{number}")


def test_fifty_in_the_same_second_get_no_room_twice() -> None:
    capacity = CapacityCache()
    capacity.node("a", node("a", 8))
    answers = [capacity.reserve(key(number), ask(2)) for number in range(50)]
    assert [isinstance(answer, RoomKept) for answer in answers] == [True] * 4 + [False] * 46
    assert isinstance(answers[-1], NoRoom)
    assert "nvidia.com/gpu" in answers[-1].why


def test_whoever_asks_again_has_its_room_already() -> None:
    capacity = CapacityCache()
    capacity.node("a", node("a", 2))
    assert capacity.reserve(key(1), ask(2)) == capacity.reserve(key(1), ask(2)) == RoomKept(node="a")


def test_a_promise_becomes_its_pod_and_goes_with_it() -> None:
    capacity = CapacityCache()
    capacity.node("a", node("a", 2))
    capacity.reserve(key(1), ask(2))
    capacity.pod(key(1), use("a", 2))
    assert capacity.promised == frozenset()
    assert isinstance(capacity.reserve(key(2), ask(1)), NoRoom)
    before = capacity.freed
    capacity.pod(key(1), None)
    assert capacity.freed > before
    assert capacity.reserve(key(2), ask(2)) == RoomKept(node="a")


def test_a_pod_that_the_scheduler_put_elsewhere_frees_what_was_kept() -> None:
    capacity = CapacityCache()
    for name in ("a", "b"):
        capacity.node(name, node(name, 2))
    capacity.reserve(key(1), ask(2))
    capacity.pod(key(1), use("b", 2))
    assert capacity.reserve(key(2), ask(2)) == RoomKept(node="a")


@given(
    sizes=st.lists(st.integers(1, 8), min_size=1, max_size=4),
    steps=st.lists(st.tuples(st.sampled_from(["reserve", "bind", "end", "release"]), st.integers(0, 9), st.integers(1, 4)), max_size=40),
)  # fmt: skip
def test_never_more_is_given_than_there_is(sizes: list[int], steps: list[tuple[str, int, int]]) -> None:
    """Count by hand what is bound to each node or promised on it; no room is refused that one node has."""
    names = [f"n{place}" for place in range(len(sizes))]
    capacity = CapacityCache()
    for name, size in zip(names, sizes, strict=True):
        capacity.node(name, node(name, size))
    given_: dict[Key, tuple[str, int]] = {}
    for verb, number, gpus in steps:
        one = key(number)
        free = {name: size - sum(part for where, part in given_.values() if where == name) for name, size in zip(names, sizes, strict=True)}  # fmt: skip
        if verb == "reserve" and one not in given_:
            answer = capacity.reserve(one, ask(gpus))
            assert isinstance(answer, RoomKept) == any(left >= gpus for left in free.values())
            if isinstance(answer, RoomKept):
                assert free[answer.node] >= gpus
                given_[one] = (answer.node, gpus)
        elif verb == "bind" and one in given_:
            capacity.pod(one, use(*given_[one]))
        elif verb == "end" and one in given_:
            capacity.pod(one, None)
            del given_[one]
        elif verb == "release" and one in capacity.promised:
            capacity.release(one)
            del given_[one]
    for name, size in zip(names, sizes, strict=True):
        left = size - sum(part for where, part in given_.values() if where == name)
        assert capacity.nodes()[name].free[GPU] == left * 1000


def test_of_several_only_those_would_fit_that_do_beside_those_before() -> None:
    capacity = CapacityCache()
    capacity.node("a", node("a", 4))
    assert capacity.would_fit([ask(3), ask(2), ask(1), ask(1)]) == [True, False, True, False]
    assert capacity.would_fit([ask(4)]) == [True]


def test_a_pod_is_its_attempts_by_its_labels_alone() -> None:
    attempt = Attempt(12, 3)
    assert attempt.pod_name("HPC_Main.1") == "slurm-hpc-main-1-12-r3"
    labels = {
        "slurm.fairlead.dev/cluster": "hpc",
        "slurm.fairlead.dev/job": "12",
        "slurm.fairlead.dev/restarts": "3",
    }
    assert attempt_of(labels, "hpc") == attempt
    assert attempt_of(labels, "other") is None
    assert attempt_of(labels | {"slurm.fairlead.dev/job": "x"}, "hpc") is None
    assert attempt_of(None, "hpc") is None


def test_when_nothing_of_slurms_stands_behind_an_attempt() -> None:
    running = a_slurm_job("7", state="RUNNING", restarts=1)
    assert is_over(Attempt(7, 0), running, completing=False)
    assert not is_over(Attempt(7, 1), running, completing=False)
    assert not is_over(Attempt(7, 2), running, completing=False), "the queue was read before it began"
    assert is_over(Attempt(7, 1), None, completing=False)
    completing = a_slurm_job("7", state="COMPLETING", restarts=1)
    assert is_over(Attempt(7, 1), completing, completing=True)
    assert not is_over(Attempt(7, 1), completing, completing=False)
    assert not is_over(Attempt(7, 1), completing, completing=True, handed_on=True), (
        "the epilog of the one before"
    )
    waiting = a_slurm_job("7", restarts=1)
    assert not is_over(Attempt(7, 0), waiting, completing=True, handed_on=True)
    assert is_over(Attempt(7, 0), a_slurm_job("7", state="CANCELLED"), completing=False, handed_on=True)
    assert is_over(Attempt(7, 0), waiting, completing=True)
    assert not is_over(Attempt(7, 1), waiting, completing=True), "slurmctld has forgotten that it started it"
    for state in ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL"):
        assert is_over(Attempt(7, 1), a_slurm_job("7", state=state, restarts=1), completing=False)


def test_who_is_woken() -> None:
    put_off = a_slurm_job("7", reason="BeginTime", restarts=1)
    assert is_put_off(put_off)
    assert not is_put_off(a_slurm_job("7", reason="Resources"))
    assert not is_put_off(a_slurm_job("7", reason="BeginTime", priority=0)), "held"
    assert not is_put_off(a_slurm_job("7", reason="BeginTime", dependency="afterok:6"))


def test_a_job_that_has_gone_back_does_not_start_again_in_the_same_second() -> None:
    at = 100.0
    rests = StateTimer(RESTART_SECONDS, lambda: at)
    first, second = Attempt(7, 1), Attempt(8, 1)
    assert rests.elapsed([first]) == []
    at = 101.0
    assert rests.elapsed([first, second]) == []
    assert rests.some_pending()
    at = 102.5
    assert rests.elapsed([first, second]) == [first, second]
    assert not rests.some_pending()
    again = Attempt(7, 2)
    assert rests.elapsed([again, second]) == [second], "it has gone back once more"
    assert rests.some_pending()
    assert rests.elapsed([]) == []
    assert not rests.some_pending()
