"""Submission as another user: the request, those who may make it, and hostile words in it."""

import asyncio
import os
import pwd
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_slurm.errors import SlurmUnreachableError, SubmitRefusedError
from fairlead_slurm.submitting import BatchJob, SubmissionMark, SubmittingClient, submission_mark
from fairlead_slurm.submitting.batch_job import MOST_BYTES, sbatch_words, script_of
from fairlead_slurm.submitting.submit_server import NoUserError, SubmitServer, SubmitTerms, user_of
from fairlead_testkit.slurmlab import PEOPLE, SlurmLab

ROOT = os.geteuid() == 0
ME = pwd.getpwuid(os.geteuid())
HOSTILE = [
    "$(touch owned)",
    "`id`;'\"\\",
    "two\n#SBATCH --hold\nlines",
    "日本語 🙂",
    "--uid=0",
    "",
    "a b",
    "*",
    "~",
]


def a_batch_job(**changes: object) -> BatchJob:
    job = BatchJob(
        account="vision", name="train-1", comment="fairlead=train-1 digest=0", script="#!/bin/sh\n"
    )
    return msgspec.structs.replace(job, **changes)


def terms(**changes: object) -> SubmitTerms:
    found = SubmitTerms(
        askers=frozenset({os.geteuid()}), users=None, least_uid=1, output="/dev/null", conf=None, seconds=20.0
    )
    return msgspec.structs.replace(found, **changes)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        min_size=1,
        max_size=6,
    )
)
def test_words_and_values_reach_the_command_as_they_are(words: list[str]) -> None:
    show = ["sh", "-c", 'printf "%s\\0" "$ODD" "$@"', "sh"]
    script = script_of([*show, *words], {"ODD": words[0]})
    ended = subprocess.run(["/bin/sh"], input=script.encode(), capture_output=True, check=True)
    assert ended.stdout.decode().split("\0") == [words[0], *words, ""]


def test_no_line_of_a_script_is_an_option() -> None:
    lines = script_of(["echo", "\n#SBATCH --uid=0"], {}).splitlines()
    assert lines[1] == ":"  # sbatch reads no further than the first command
    assert lines.index("#SBATCH --uid=0'") > 1


def test_amounts_of_one_task_are_its_nodes_and_of_several_each_ones() -> None:
    one = sbatch_words(a_batch_job(cpus=4, memory_mib=900, gpus=2, minutes=0), home="/home", output="o")
    assert {"--nodes=1", "--cpus-per-task=4", "--mem=900M", "--gres=gpu:2", "--time=1"} <= set(one)
    several = sbatch_words(a_batch_job(tasks=3, cpus=4, memory_mib=901, gpus=2), home="/home", output="o")
    assert {"--ntasks=3", "--mem-per-cpu=226M", "--gpus-per-task=2", "--chdir=/home"} <= set(several)
    assert not [word for word in several if word.startswith(("--nodes", "--gres", "--time"))]


@pytest.mark.parametrize(
    "odd",
    [
        {"account": "-x"},
        {"account": "a b"},
        {"name": "--hold"},
        {"comment": "a\nb"},
        {"tasks": 0},
        {"uid": 0},
    ],
)
def test_what_is_no_batch_job_is_not_read(odd: dict[str, object]) -> None:
    written = msgspec.to_builtins(a_batch_job()) | odd
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(written, BatchJob)


def test_a_comment_says_whose_submission_a_job_is() -> None:
    origin = SubmissionMark(submission="train-1", digest="0123456789abcdef0123", traceparent="00-a-b-01")
    found = submission_mark(origin.comment("registry.example/train:3"))
    assert found is not None
    assert (found.submission, found.traceparent) == ("train-1", "00-a-b-01")
    assert found.is_of(origin.digest)
    assert not found.is_of("another")
    assert submission_mark("image=x fairlead=train-1 digest=0") is None
    assert submission_mark("fairlead=train-1") is None


def test_no_job_runs_as_root_or_the_systems_users(tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text("vision root\nspeech nobody-of-that-name\n# robots root\n")
    for account, why in (
        ("vision", "'root' has uid 0"),
        ("speech", "nobody-of-that-name"),
        ("odd", "'odd'"),
    ):
        with pytest.raises(NoUserError, match=why):
            user_of(account, terms(users=users))
    with pytest.raises(NoUserError, match="'games' has uid 5, and users below 1000"):
        user_of("games", terms(least_uid=1000))
    users.chmod(0o666)
    with pytest.raises(NoUserError, match="written by others"):
        user_of("vision", terms(users=users))


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[SubmitTerms], SubmittingClient]]:
    """Start helpers in this process."""
    running: list[tuple[SubmitServer, threading.Thread]] = []

    def start(found: SubmitTerms) -> SubmittingClient:
        path = tmp_path / f"helper-{len(running)}.sock"
        helper = SubmitServer(path, found)
        thread = threading.Thread(target=helper.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        running.append((helper, thread))
        return SubmittingClient(path, seconds=20.0)

    yield start
    for helper, thread in running:
        helper.shutdown()
        thread.join()
        helper.server_close()


async def test_who_is_not_allowed_is_refused_and_hears_why(
    serve: Callable[[SubmitTerms], SubmittingClient],
) -> None:
    client = serve(terms(askers=frozenset({4711})))
    for script in ("", "x" * 500_000) * 8:
        with pytest.raises(SubmitRefusedError, match=f"uid {ME.pw_uid} may not ask"):
            await client.submit(a_batch_job(script=script))


async def test_nobody_gets_anothers_token(
    serve: Callable[[SubmitTerms], SubmittingClient], tmp_path: Path
) -> None:
    """A token is as good as its user, so an asker cannot name one."""
    serve(terms())
    reader, writer = await asyncio.open_unix_connection(tmp_path / "helper-0.sock")
    writer.write(b'{"token_seconds": 600, "username": "root"}\n')
    assert b'"refused":"the job cannot be read' in await reader.readline()
    writer.close()


async def test_a_job_that_is_too_large_is_refused_and_not_asked_again(
    serve: Callable[[SubmitTerms], SubmittingClient],
) -> None:
    with pytest.raises(SubmitRefusedError, match="larger than"):
        await serve(terms()).submit(a_batch_job(script="x" * MOST_BYTES))


async def test_a_helper_that_is_not_there_leaves_it_open(tmp_path: Path) -> None:
    with pytest.raises(SlurmUnreachableError, match=r"none\.sock"):
        await SubmittingClient(tmp_path / "none.sock", seconds=1.0).submit(a_batch_job())


@pytest.mark.slurm
@pytest.mark.skipif(not ROOT, reason="submitting as others needs root")
async def test_a_job_runs_as_its_accounts_user(
    slurm_lab: SlurmLab, tmp_path: Path, serve: Callable[[SubmitTerms], SubmittingClient]
) -> None:
    users = tmp_path / "users"
    users.write_text("".join(f"{account} {user}\n" for account, user in PEOPLE.items()))
    out = slurm_lab.layout.folder / "out"
    client = serve(terms(users=users, output=f"{out}/%j", conf=slurm_lab.conf))
    show = script_of(["sh", "-c", 'id -un; printf "%s\\n" "$@"', "sh", *HOSTILE], {"ODD": "x"})
    wish = {
        "cpus": 2,
        "memory_mib": 300,
        "gpus": 1,
        "working_dir": str(out),
        "comment": "it's $(touch owned)",
    }
    number = await client.submit(a_batch_job(script=show, **wish))
    several = await client.submit(
        a_batch_job(tasks=3, cpus=2, memory_mib=300, gpus=1, script="#!/bin/sh\nsleep 60\n")
    )
    await asyncio.to_thread(slurm_lab.until, lambda: number not in slurm_lab.jobs("%i"), "it ended")
    lines = (out / number).read_text().splitlines()
    assert lines[0] == PEOPLE["vision"]
    assert "\n".join(lines[1:]) == "\n".join(HOSTILE)
    assert not list(slurm_lab.layout.folder.rglob("owned"))
    told = slurm_lab.run("scontrol", "-o", "show", "job", several)
    assert "TRES=cpu=6,mem=900M,node=1,billing=6,gres/gpu=3" in told
    with pytest.raises(SubmitRefusedError, match="Invalid qos"):
        await client.submit(a_batch_job(qos="no-such-qos"))
    with pytest.raises(SubmitRefusedError, match="account"):
        await client.submit(a_batch_job(account="robots", partition="no-such-account-or-partition"))
