"""The port to Slurm on a real slurmrestd: it says and does as Slurm's commands do."""

import asyncio
import contextlib
import os
import pwd
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from fairlead_slurm.controller import CommandController
from fairlead_slurm.errors import SlurmUnreachableError, UnreadableError
from fairlead_slurm.queue import QueueReading, SlurmJob
from fairlead_slurm.rest.api import api_of
from fairlead_slurm.rest.client import RestClient
from fairlead_slurm.rest.controller import RestController
from fairlead_slurm.rest.jobs import TasksCutError, reading_of, tasks_of
from fairlead_slurm.slurm_token import SlurmToken
from fairlead_slurm.submitting import SubmittingClient
from fairlead_slurm.submitting.submit_server import SubmitServer, SubmitTerms
from fairlead_testkit.slurmlab import OPERATOR, SlurmLab, SlurmOptions
from fairlead_testkit.timing.awaiting import eventually


def on_slurm[**P, R](test: Callable[P, R]) -> Callable[P, R]:
    """Mark a test that needs the lab, with slurmrestd."""
    as_root = pytest.mark.skipif(os.geteuid() != 0, reason="slurmrestd in the lab needs root")
    return pytest.mark.slurm(as_root(test))


WHOLE = "--gres=gpu:8"
GUESSES = ("priority", "started", "ends")
"""Fields of a waiting job that change by themselves: its age moves the first each second, Slurm's backfill
the others."""
OWN_PRIORITY = 3500
"""Sum of the lab's weights."""
ODD = "日本 $(x)\n'\"\x1f"
NO_UTF8 = os.fsdecode(b"a\xff\xfe\xe4b")


@pytest.fixture(scope="module")
def lab(slurm_programs: None) -> Iterator[SlurmLab]:
    del slurm_programs
    with SlurmLab(SlurmOptions(rest=True)) as started:
        yield started


@contextlib.contextmanager
def helper(lab: SlurmLab, directory: Path) -> Iterator[SubmittingClient]:
    """The helper that makes tokens, run by root in this test."""
    terms = SubmitTerms(
        askers=frozenset({os.geteuid()}),
        users=None,
        least_uid=1,
        output="/dev/null",
        conf=lab.conf,
        seconds=20.0,
    )
    path = directory / "submit.sock"
    with SubmitServer(path, terms) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield SubmittingClient(path, seconds=20.0)
        server.shutdown()


def token_of(lab: SlurmLab, user: str, seconds: int) -> str:
    made = lab.run("scontrol", "token", f"username={user}", f"lifespan={seconds}")
    return made.strip().removeprefix("SLURM_JWT=")


def over_tcp(lab: SlurmLab, token: SlurmToken) -> RestController:
    client = RestClient(f"http://127.0.0.1:{lab.ports.slurmrestd}", token=token, seconds=20.0)
    return RestController(client, CommandController(lab.conf))


@contextlib.contextmanager
def being(user: str) -> Iterator[None]:
    """Be that user for the block, to whoever asks the kernel."""
    os.seteuid(pwd.getpwnam(user).pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


class OperatorsClient(RestClient):
    """A client that connects as the operator."""

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[aiohttp.ClientSession]:
        with being(OPERATOR):
            async with super().session() as session:
                yield session


def all_kinds_of_jobs(lab: SlurmLab) -> str:
    """Submit jobs of all kinds; returns an array whose tasks slurmrestd cannot all name."""
    for _ in range(3):
        lab.submit("spare", WHOLE, "--nodes=1")
    running = lab.submit("vision", "--gres=gpu:h100:2", "--nodes=1", "--time=1-2:3:4", "--mem=3G")
    lab.submit("vision", WHOLE, "--hold", "--nice=5", f"--comment={ODD}", f"--job-name={ODD}")
    lab.submit("vision", WHOLE, f"--comment={NO_UTF8}", f"--job-name={NO_UTF8}")
    lab.submit("vision", WHOLE, "--nice=-77", "--nodes=2", "--qos=urgent")
    lab.submit("robots", "--ntasks=4", "--gpus-per-task=1", f"--dependency=afterok:{running}")
    lab.submit("robots", "--begin=now+1hour", "--gpus=3", "--cpus-per-gpu=2")
    lab.submit("robots", "--exclusive", "--nodes=2", "--hold")
    lab.run("scancel", lab.submit("robots", WHOLE))
    array = lab.submit("speech", WHOLE, "--array=0-20%4")
    lab.run("scontrol", "update", f"jobid={array}_3", "sitefactor=40000")
    lab.run("scancel", *(f"{array}_{task}" for task in (5, 7, 9)))
    lab.run("sbatch", "--account=robots", WHOLE, ":", WHOLE, "--ntasks=2", given="#!/bin/sh\nsleep 60\n")
    # Not with a step, `1-999:2`: of such an array squeue leaves out the last task.
    return lab.submit("speech", WHOLE, "--array=1-600", "--hold")


def by_id(reading: QueueReading) -> dict[str, SlurmJob]:
    assert reading.unreadable == 0
    return {job.id: job for job in reading.jobs}


def differences(before: QueueReading, found: QueueReading, after: QueueReading) -> list[object]:
    """The first few, as (job, field, found, wanted); what slurmctld changed meanwhile is left out. All of them would take minutes
    to print."""
    first, middle, last = (
        {name: job for name, job in by_id(reading).items() if job.state != "CANCELLED"}
        for reading in (
            before,
            found,
            after,
        )  # of the rest of an array that was cancelled squeue names no task
    )
    apart: list[object] = [*sorted(middle.keys() ^ first.keys())]
    apart += [
        (name, field, getattr(middle[name], field), getattr(first[name], field))
        for name in first.keys() & middle.keys() & last.keys()
        for field in SlurmJob.__struct_fields__
        if field not in GUESSES or middle[name].state != "PENDING"
        if getattr(first[name], field) == getattr(last[name], field) != getattr(middle[name], field)
    ]
    return apart[:20]


async def same_jobs(one: RestController, other: CommandController) -> int:
    """Check that both tell the same jobs; returns their number."""
    before, found, after = await other.jobs(), await one.jobs(), await other.jobs()
    apart = differences(before, found, after)
    assert apart == []
    priorities = {job.id: job.priority for job in before.jobs}
    far = [
        job.id
        for job in found.jobs
        if abs(job.priority - priorities.get(job.id, job.priority)) > OWN_PRIORITY
    ]
    assert far == []
    return len(found.jobs)


@pytest.mark.parametrize("way", ["tcp", pytest.param("socket", marks=pytest.mark.deep)])
@on_slurm
async def test_it_says_what_the_commands_say(lab: SlurmLab, tmp_path: Path, way: str) -> None:
    commands = CommandController(lab.conf)
    with contextlib.ExitStack() as stack:
        if way == "tcp":
            maker = stack.enter_context(helper(lab, tmp_path))
            rest = over_tcp(lab, SlurmToken(tmp_path / "token", make=maker.token))
        else:
            client = OperatorsClient(f"unix:{lab.layout.rest_socket}", token=None, seconds=20.0)
            rest = RestController(client, commands)
        array = await asyncio.to_thread(all_kinds_of_jobs, lab)
        assert await same_jobs(rest, commands) > 500
        lab.run("scancel", *(f"{array}_{task}" for task in range(5, 600, 2)))
        assert (
            await same_jobs(rest, commands) > 250
        )  # by the commands: slurmrestd names the first tasks alone
        assert await rest.nodes() == await commands.nodes()
        assert await rest.partitions() == await commands.partitions()
        assert (await rest.settings()).cluster == "lab"
        assert await rest.accounts()
        single, gone = lab.submit("vision", WHOLE), "4000000"
        assert (await rest.set_site_factors([(single, 70_000), (gone, 1)])).keys() == {gone}
        assert by_id(await rest.jobs())[single].priority // 10_000 == 7
        assert (await rest.cancel([single, f"{array}_1", gone])).keys() == {gone}
        waiting = {job.id for job in (await rest.jobs()).jobs if job.state == "PENDING"}
        assert waiting.isdisjoint({single, f"{array}_1"})
        assert f"{array}_3" in waiting
    lab.clear()


def with_a_wrong_signature(token: str) -> str:
    """The token with another signature: it lasts long, as far as anybody but slurmctld can tell."""
    words, _, signature = token.rpartition(".")
    return f"{words}.{signature[::-1]}"


async def refuses(lab: SlurmLab, token: Path) -> bool:
    try:
        await over_tcp(lab, SlurmToken(token)).jobs()
    except SlurmUnreachableError:
        return True
    return False


@on_slurm
async def test_a_token_that_ended_or_is_refused_is_made_anew_and_nothing_is_lost(
    lab: SlurmLab, tmp_path: Path
) -> None:
    made: list[str] = []
    path = tmp_path / "token"
    job = lab.submit("vision", WHOLE, "--hold")
    with helper(lab, tmp_path) as maker:
        path.write_text(token_of(lab, "root", 1))
        await eventually(lambda: refuses(lab, path), 30, what="slurmctld does not take the token any more")
        assert job in by_id(await over_tcp(lab, SlurmToken(path, make=maker.token, made=made.append)).jobs())
        assert made == ["made"]
        assert path.stat().st_mode & 0o777 == 0o600
        for ask in (
            lambda rest, _: rest.jobs(),
            lambda _, commands: commands.jobs(),
            lambda rest, _: rest.cancel([job]),
        ):
            made.clear()
            path.write_text(with_a_wrong_signature(token_of(lab, "root", 3600)))
            token = SlurmToken(path, make=maker.token, made=made.append)
            assert await ask(over_tcp(lab, token), CommandController(lab.conf, token=token)) is not None
            assert made == ["made"]
    waiting = {
        found.id for found in (await CommandController(lab.conf).jobs()).jobs if found.state == "PENDING"
    }
    assert job not in waiting


@on_slurm
async def test_where_nobody_makes_tokens_a_new_one_may_be_put_in_its_place(
    lab: SlurmLab, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    rest = over_tcp(lab, SlurmToken(path))
    with pytest.raises(SlurmUnreachableError, match="no token"):
        await rest.jobs()
    wrong = with_a_wrong_signature(token_of(lab, "root", 3600))
    path.write_text(wrong)
    with pytest.raises(SlurmUnreachableError) as raised:
        await rest.jobs()
    assert wrong not in str(raised.value)
    path.write_text(token_of(lab, "root", 3600))
    assert (await rest.jobs()).unreadable == 0


@on_slurm
async def test_a_slurmrestd_or_slurmctld_that_is_away_comes_back(lab: SlurmLab, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token_of(lab, "root", 3600))
    client = RestClient(f"http://127.0.0.1:{lab.ports.slurmrestd}", token=SlurmToken(path), seconds=2.0)
    rest = RestController(client, CommandController(lab.conf))
    assert (await client.api()).reads == "v0.0.38"
    assert (await client.api()).levels is None
    for name in ("slurmctld", "slurmrestd"):
        await asyncio.to_thread(lab.process(name).pause)
        try:
            with pytest.raises(SlurmUnreachableError, match="slurmrestd at"):
                await rest.jobs()
        finally:
            lab.process(name).resume()
        assert (await rest.jobs()).unreadable == 0


FORMS = {
    "22.05": {
        "job_id": 8, "array_job_id": 7, "array_task_id": 3, "job_state": "RUNNING", "priority": 40066, "nice": None,
        "partition": "gpu", "user_name": "games", "submit_time": 1795443363, "start_time": 1795443364, "end_time": 1795537204,
        "time_limit": 1564, "node_count": 2, "tasks": 2, "restart_cnt": 0, "tres_alloc_str": "cpu=4,mem=6G,node=2",
        "tres_per_node": "gres:gpu:h100:2",
    },
    "24.11": {
        "job_id": 8, "array_job_id": {"set": True, "infinite": False, "number": 7},
        "array_task_id": {"set": True, "infinite": False, "number": 3}, "job_state": ["RUNNING"],
        "priority": {"set": True, "infinite": False, "number": 40066}, "nice": 0, "partition": "gpu", "user_name": "games",
        "submit_time": {"set": True, "infinite": False, "number": 1795443363},
        "start_time": {"set": True, "infinite": False, "number": 1795443364},
        "end_time": {"set": True, "infinite": False, "number": 1795537204},
        "time_limit": {"set": True, "infinite": False, "number": 1564},
        "node_count": {"set": True, "infinite": False, "number": 2}, "tasks": {"set": True, "infinite": False, "number": 2},
        "restart_cnt": 0, "tres_alloc_str": "cpu=4,mem=6G,node=2", "tres_per_node": "gres/gpu:h100:2",
    },
}  # fmt: skip
"""A record of one job as both releases tell it."""


def read(*records: dict[str, object]) -> QueueReading:
    return reading_of(msgspec.json.encode({"jobs": records, "errors": []}))


def test_a_negative_nice_has_its_sign_again() -> None:
    assert [
        job.nice for job in read(FORMS["22.05"] | {"nice": 2**32 - 77}, FORMS["24.11"] | {"nice": -77}).jobs
    ] == [-77, -77]


def test_both_forms_tell_the_same_job() -> None:
    [older], [newer] = (read(record).jobs for record in FORMS.values())
    assert older == newer
    assert (older.id, older.number, older.nodes, older.resources["gres/gpu"]) == ("7_3", 8, 2, 4000)
    assert older.time_limit == 1564 * 60 * 10**6
    assert older.ends == 1795537204 * 10**6
    assert [job.ends for job in read(FORMS["22.05"] | {"time_limit": None}).jobs] == [None]


@pytest.mark.parametrize(
    ("told", "state"),
    [
        (["RUNNING", "CONFIGURING"], "CONFIGURING"),
        (["PENDING", "REQUEUED", "COMPLETING"], "COMPLETING"),
        (["FAILED"], "FAILED"),
    ],
)
def test_of_several_states_squeues_one_counts(told: list[str], state: str) -> None:
    assert [job.state for job in read(FORMS["24.11"] | {"job_state": told}).jobs] == [state]


def test_a_record_that_cannot_be_read_keeps_no_other_back() -> None:
    found = read(FORMS["22.05"] | {"submit_time": "soon"}, FORMS["22.05"], {"job_id": 1})
    assert (len(found.jobs), found.unreadable) == (1, 2)
    with pytest.raises(UnreadableError):
        reading_of(b"[]")


def test_tasks_of_an_array_are_named() -> None:
    assert list(tasks_of("0,2-4,10-20:5")) == [0, 2, 3, 4, 10, 15, 20]
    rest = FORMS["22.05"] | {"array_task_id": None, "array_task_string": "1-3%2", "job_state": "PENDING"}
    assert [(job.id, job.number) for job in read(rest).jobs] == [("7_1", 8), ("7_2", 8), ("7_3", 8)]
    with pytest.raises(TasksCutError):
        read(rest | {"array_task_string": "1,3,5,..."})
    assert read(rest | {"array_task_string": "1-x"}).unreadable == 1


def description(*versions: str, able: tuple[str, ...] = ()) -> bytes:
    fields: dict[bool, dict[str, object]] = {True: {"site_factor": {}, "nice": {}}, False: {"nice": {}}}
    update = {
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/%s_job"}}}}
    }
    paths: dict[str, object] = {"/openapi/v3": {"get": {}}}
    for version in versions:
        paths |= {f"/slurm/{version}/jobs": {"get": {}}, f"/slurm/{version}/job/{{job_id}}": {"post": update}}
    schemas = {f"{version}_job": {"properties": fields[version in able]} for version in versions}
    text = msgspec.json.encode({"paths": paths, "components": {"schemas": schemas}}).decode()
    for version in versions:
        text = text.replace("%s_job", f"{version}_job", 1)
    return text.encode()


def test_the_api_is_found_out() -> None:
    old = api_of(description("v0.0.36", "v0.0.38", "v0.0.37"))
    assert (old.reads, old.levels) == ("v0.0.38", None)
    new = api_of(description("v0.0.40", "v0.0.41", "v0.0.50", able=("v0.0.40", "v0.0.50")))
    assert (new.reads, new.levels, new.tells_partitions) == ("v0.0.41", "v0.0.40", False)
    with pytest.raises(UnreadableError, match=r"offers v0\.0\.50"):
        api_of(description("v0.0.50"))
    with pytest.raises(UnreadableError):
        api_of(b"{")
