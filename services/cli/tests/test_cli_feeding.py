from fairlead_cli.demo.feeding import lap_of
from fairlead_contracts.base.tokens import encode_token
from fairlead_sim import demo_workload


def test_each_lap_has_jobs_of_its_own_and_all_else_is_equal() -> None:
    workload = demo_workload(5)
    first, second = lap_of(workload, 1_000.4), lap_of(workload, 1_276.0)
    names = [job.id for lap in (first, second) for job in lap.jobs]
    assert len(set(names)) == len(names) == 2 * len(workload.jobs)
    assert all(encode_token(name) for name in names)
    assert [(job.offset, job.demand, job.run) for job in second.jobs] == [
        (job.offset, job.demand, job.run) for job in workload.jobs
    ]
    assert second.policy == workload.policy
