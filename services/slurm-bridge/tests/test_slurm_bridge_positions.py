"""Domains, arrays, nice and first-seen times."""

from hypothesis import given
from hypothesis import strategies as st

from fairlead_slurm_bridge.statements.first_seen import FirstSeen, WaitingTurn, instants_by_nice
from fairlead_slurm_bridge.statements.jobs import positioned
from fairlead_slurm_bridge.statements.partition_pools import Naming, partition_pools
from fairlead_testkit.inputs.slurm_builders import GPU, NOON, SECOND, a_node, a_partition, a_slurm_job

NAMING = Naming.of(GPU)


def test_partitions_that_share_nodes_and_tier_are_one_pool() -> None:
    partitions = [
        a_partition("a"),
        a_partition("b", is_default=True),
        a_partition("rush", tier=10),
        a_partition("far"),
    ]
    nodes = [
        a_node("n1", "a", "rush"),
        a_node("n2", "a", "b", "rush"),
        a_node("n3", "b"),
        a_node("n4", "far"),
    ]
    found = {pool.name: pool for pool in partition_pools(partitions, nodes, NAMING)}
    assert {name: pool.partitions for name, pool in found.items()} == {
        "b": ("a", "b"),
        "rush": ("rush",),
        "far": ("far",),
    }
    assert found["b"].capacity == {"cpu": 48_000, "memory": 3 * 2**30, GPU: 24_000}
    assert found["rush"].capacity[GPU] == 16_000
    common = {"b+rush": {"cpu": 32_000, "memory": 2 * 2**30, GPU: 16_000}}
    assert [found[name].common for name in ("b", "rush", "far")] == [common, common, {}]


def test_nodes_that_take_no_jobs_are_no_capacity() -> None:
    [found] = partition_pools(
        [a_partition("a")], [a_node("n1", "a"), a_node("n2", "a", usable=False)], NAMING
    )
    assert found.capacity[GPU] == 8000


JOBS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(-2, 2)), max_size=12)


@given(JOBS)
def test_nice_sorts_within_an_account_and_moves_nobody_elses_instants(jobs: list[tuple[str, int]]) -> None:
    waiting = [
        WaitingTurn(uid=str(number), group=(account, "gpu", None), nice=nice, since=number)
        for number, (account, nice) in enumerate(jobs)
    ]
    moved = instants_by_nice(waiting)
    for account in "ab":
        mine = [job for job in waiting if job.group[0] == account]
        since = {job.uid: moved.get(job.uid, job.since) for job in mine}
        assert sorted(since.values()) == [job.since for job in mine]
        by_instant = sorted(mine, key=lambda job: since[job.uid])
        assert [(job.nice, job.since) for job in by_instant] == sorted((job.nice, job.since) for job in mine)


def test_without_nice_nothing_is_traded() -> None:
    assert not instants_by_nice(
        [WaitingTurn(uid=str(n), group=("a", "q", None), nice=3, since=n) for n in range(5)]
    )


def test_the_first_waiting_tasks_of_an_array_have_a_position() -> None:
    rest = [a_slurm_job(f"7_{task}", number=7) for task in range(20, 0, -1)]
    split = [a_slurm_job("7_30", number=8), a_slurm_job("7_31", number=9)]
    running = a_slurm_job("7_40", number=10, state="RUNNING")
    single = a_slurm_job("11")
    found = positioned([*rest, *split, running, single], window=5)
    assert {job.id for job in found.alone} == {"7_30", "7_31", "7_40", "11"}
    [left] = found.rests
    assert (left.tasks, [job.id for job in left.window]) == (20, ["7_1", "7_2", "7_3"])


def test_tasks_of_one_array_have_one_instant_and_trade_as_many() -> None:
    tasks = [WaitingTurn(uid=f"a_{n}", group=("a", "q", None), nice=5, since=7) for n in range(3)]
    kind = WaitingTurn(uid="b", group=("a", "q", None), nice=0, since=9)
    moved = instants_by_nice([*tasks, kind])
    assert moved == {"b": 7, "a_0": 8, "a_1": 9, "a_2": 10}


def test_a_requeue_keeps_what_was_first_and_a_new_job_of_that_number_does_not() -> None:
    job = a_slurm_job("5")
    seen = FirstSeen()
    seen.take([job])
    seen.take([a_slurm_job("5", submitted=NOON + 60 * SECOND, restarts=1)])
    assert seen.since(job) == NOON
    again = FirstSeen()
    again.adopt({"5": NOON})
    again.take([a_slurm_job("5", submitted=NOON + 60 * SECOND, restarts=2)])
    assert again.since(job) == NOON
    again.take([a_slurm_job("5", submitted=NOON + 90 * SECOND)])
    assert again.since(job) == NOON + 90 * SECOND


def test_a_requeued_task_is_as_old_as_its_array() -> None:
    seen = FirstSeen()
    tasks = [a_slurm_job("5_1", submitted=NOON + 60 * SECOND, restarts=1, number=6), a_slurm_job("5_2")]
    seen.take(tasks)
    assert [seen.since(task) for task in tasks] == [NOON, NOON]
    seen.take([tasks[0]])
    assert seen.since(tasks[0]) == NOON


def test_jobs_and_arrays_of_one_second_go_by_their_numbers() -> None:
    jobs = [a_slurm_job(name) for name in ("10", "9", "11_2", "11_1", "100")]
    seen = FirstSeen()
    seen.take(jobs)
    seen.take([*jobs, a_slurm_job("101")])
    instants = [seen.since(a_slurm_job(name)) for name in ("9", "10", "11_1", "100", "101")]
    assert instants == sorted(set(instants))
    assert seen.since(jobs[2]) == seen.since(jobs[3])
    assert all(NOON <= since < NOON + SECOND for since in instants)
