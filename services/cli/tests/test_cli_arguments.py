import errno
import inspect
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import msgspec
import pytest
from cyclopts import App, CycloptsError

from fairlead_cli.client.connection import run
from fairlead_cli.client.submitting.flags import JobFlags
from fairlead_cli.client.submitting.gathering import gather
from fairlead_cli.commands import application
from fairlead_cli.commands.operator_words import SaidFlags
from fairlead_cli.demo.flags import DemoFlags, read_weights
from fairlead_cli.errors import CommandError, InputError
from fairlead_cli.local.flags import UpFlags
from fairlead_cli.nats.flags import ServerFlags, WhoFlags
from fairlead_cli.options import KubeCluster, Reach
from fairlead_cli.signals import ending_on_signals, happens
from fairlead_testkit.processes.command import fairlead
from fairlead_testkit.processes.fresh_interpreter import printed_by


def parsed(line: str) -> dict[str, object]:
    _, bound, _ = application(line.split(maxsplit=1)).parse_args(line, print_error=False, exit_on_error=False)
    return dict(bound.arguments)


def test_submit_takes_flags_a_file_or_standard_input() -> None:
    flags = parsed(
        "submit --tenant team-a --gpus 8 --cpu 32 --demand x/y=3 --demand z=1 --class urgent --no-follow"
    )
    assert flags["job"] == JobFlags(
        tenant="team-a", gpus="8", cpu="32", demand=["x/y=3", "z=1"], job_class="urgent"
    )
    assert flags["follow"] is False
    assert parsed("submit jobs.jsonl")["file"] == Path("jobs.jsonl")
    assert parsed("submit -")["file"] == Path("-")
    assert parsed("submit --frontend lsf")["job"] == JobFlags(frontend="lsf"), "one that is not of ours"


@pytest.mark.parametrize("line", ["submit --gpu 1", "submit - --gpu 1", "submit jobs.jsonl --gpu=1"])
def test_a_misspelt_flag_of_submit_is_told_with_what_was_meant(line: str) -> None:
    with pytest.raises(CycloptsError) as refused:
        parsed(line)
    assert "Did you mean --gpus?" in str(refused.value)
    assert "?;" not in str(refused.value), "a question ends its sentence"


def test_an_address_comes_from_the_flag_or_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_NATS_URL", "nats://from-environment:1")
    assert getattr(parsed("queue")["reach"], "nats") == "nats://from-environment:1"  # noqa: B009 # untyped flags
    assert getattr(parsed("queue --nats nats://x:2")["reach"], "nats") == "nats://x:2"  # noqa: B009 # untyped flags


@pytest.mark.parametrize(
    "line", ["queue -o json", "tenants -o json", "explain job-1 -o json", "submit - -o json"]
)
def test_results_can_be_json(line: str) -> None:
    assert parsed(line)["output"] == "json"


@pytest.mark.parametrize(
    "line",
    [
        "demo --seconds 10 --weights a=3,b=2 --scorers 1 --json --report r.html --seed 3",
        "up --port 4222 --store d",
        "up --kubeconfig k --context a --context b --dry-run --lever boost --gang-fit",
        "doctor --kubeconfig k --context a --cluster c --accept x --accept y --lever priority --revoke -o json",
        "doctor --kubeconfig k --give-leave",
        "watchdog gpu other --after 5 --back-after 2 --every 1 --kubeconfig k --cluster c --nats n",
        "approve train --class urgent --tenant a --why w --by me --withdraw",
    ],
)
def test_running_commands_take_their_flags(line: str) -> None:
    assert parsed(line)


def words_of(group: App) -> Iterator[tuple[str, Callable[..., object]]]:
    """Words of a group, those below words included, each with the command that it runs."""
    for name in group:
        if name.startswith("-"):
            continue
        command = group[name].default_command
        if command is None:
            yield from words_of(group[name])
        else:
            yield name, command


def test_every_flag_of_every_command_says_what_it_is_for() -> None:
    found = dict(words_of(application()))
    assert {"explain", "apply", "watchdog"} <= found.keys()
    for name, command in found.items():
        for parameter, its in inspect.signature(command).parameters.items():
            grouped = parameter in ("reach", "said", "where", "who", "server", "flags") or (
                parameter == "job" and name == "submit"
            )
            shared = any(getattr(one, "help", "") for one in getattr(its.annotation, "__metadata__", ()))
            assert grouped or shared or f"    {parameter}: " in (command.__doc__ or ""), (name, parameter)


@pytest.mark.parametrize(
    "group", [DemoFlags, KubeCluster, JobFlags, Reach, SaidFlags, ServerFlags, UpFlags, WhoFlags]
)
def test_every_flag_of_a_group_says_what_it_is_for(group: type) -> None:
    source = inspect.getsource(group)
    for name in inspect.signature(group).parameters:
        assert re.search(rf'^    {name}: .*\n    """', source, re.MULTILINE), name


def run_cli(*words: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    return fairlead(*words, environ=os.environ | {"COLUMNS": str(columns)})


ARITHMETIC = {"numpy", "fairlead_policy", "fairlead_sim", "fairlead_kube", "fairlead_runtime"}
FOREIGN = {
    "aiohttp",
    "kubernetes_asyncio",
    "prometheus_client",
    "structlog",
    "nats_server",
    "opentelemetry.sdk",
}
SERVICES = {
    "fairlead_scorer",
    "fairlead_admitter",
    "fairlead_watcher",
    "fairlead_checker",
    "fairlead_slurm_bridge",
}


def loaded_by(script: str) -> set[str]:
    return set(printed_by(f"import sys; {script}; print(*sys.modules)").split())


def test_what_speaks_to_a_running_instance_does_without_the_arithmetic() -> None:
    """Starting is most of what such a command takes: the list holds it, since a clock would not on a busy machine."""
    words = ["asking", "steering_mode", "watching", "submitting.session", "submitting.gathering", "readiness"]
    modules = {f"fairlead_cli.client.{word}" for word in words}
    loaded = loaded_by(f"import {', '.join(sorted(modules))}")
    assert modules <= loaded
    assert not loaded & (ARITHMETIC | FOREIGN | SERVICES | {"yaml"})


def test_a_snapshot_is_taken_without_columns_of_numbers() -> None:
    loaded = loaded_by("import fairlead_cli.paper.snapshot_taking")
    assert "fairlead_policy.snapshot.from_state" in loaded
    assert not loaded & (FOREIGN | SERVICES | {"numpy", "yaml"})


def test_an_order_loads_nothing_that_talks_to_nats() -> None:
    assert not loaded_by("import fairlead_cli.paper.order_run") & {"fairlead_bus", "nats"}


def test_what_is_left_at_the_end_is_not_looked_through() -> None:
    script = (
        "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count() > 1000)); "
        "sys.argv[1:] = ['queue', '--help']; from fairlead_cli.__main__ import main; main()"
    )
    assert printed_by(script).splitlines()[-1] == "True"


SLOW = ARITHMETIC | FOREIGN | SERVICES | {"yaml", "rich", "nacl", "nkeys", "opentelemetry", "nats.js.api"}
"""Libraries that a question has no use for before its answer is there: each takes longer than the
question."""

NOT_ASKED = ("fairlead_bus.facts.", "fairlead_bus.ownership.", "fairlead_bus.server.", "fairlead_bus.work.")
"""Parts of the bus that services alone use."""


@pytest.mark.parametrize("words", ["queue", "explain job", "submit --tenant a --gpus 1", "pause"])
def test_a_question_waits_for_no_library_that_it_does_not_need(words: str, tmp_path: Path) -> None:
    """The command as a person types it runs to the point where it looks for a running instance."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "fairlead_cli", *words.split()],
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path), "FAIRLEAD_NATS_URL": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "no running Fairlead is known" in told.stderr
    imported = set(re.findall(r"\| +([\w.]+)$", told.stderr, re.MULTILINE))
    assert "nats.aio.client" in imported
    assert not {"fairlead_cli.commands.policies", "fairlead_cli.commands.instances"} & imported, (
        "of other commands"
    )
    assert not {one for one in imported if one.startswith(NOT_ASKED)}
    # The name alone is what is looked for and kept from being found.
    assert not imported & (SLOW - {"aiohttp"}) | {one for one in imported if one.startswith("aiohttp.")}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("queue gpu", "`fairlead queue` does not take gpu. Did you mean --pool gpu?"),
        ("policy history 3", "`fairlead policy history` does not take 3."),
        ("pause gpu cpu", "`fairlead pause` does not take cpu."),
        ("explain", "`fairlead explain` needs JOB"),
        ("queue --limit", "--limit needs a value"),
        ("queue --limit many", "--limit must be a whole number, not 'many'"),
        ("policy revert last", "REVISION must be a whole number, not 'last'"),
        ("queue --polo gpu", "Unknown option: --polo. Did you mean --pool?"),
        ("quue", 'Unknown command "quue". Did you mean "queue"?'),
    ],
)
def test_who_types_a_command_wrongly_hears_what_it_takes(typed: str, said: str) -> None:
    told = run_cli(*typed.split())
    assert (told.returncode, told.stdout) == (2, "")
    wrong, remedy = told.stderr.splitlines()
    assert wrong.startswith(f"error: {said}")
    assert re.fullmatch(r"`fairlead[a-z ]* --help` shows what it takes\.", remedy)


@pytest.mark.parametrize("words", ["--help", "queue --help", "policy", "policy schema", "--version"])
def test_a_reader_that_leaves_is_no_failure(words: str) -> None:
    """A reader such as `head` may leave; the library that prints help and tables ends with 1 there."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        told = subprocess.run(
            [sys.executable, "-m", "fairlead_cli", *words.split()],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=30,
        )
    finally:
        os.close(writing)
    assert (told.returncode, told.stderr) == (0, "")


def test_help_imports_nothing_heavy() -> None:
    loaded = loaded_by("import fairlead_cli.commands as words; words.application()")
    assert not loaded & (ARITHMETIC | FOREIGN | SERVICES | {"nats", "fairlead_bus", "yaml", "msgspec"})
    assert "fairlead demo" in run_cli("--help").stdout


@pytest.mark.parametrize(
    "command", ["", "up", "doctor", "policy", "policy apply", "nats push", "slurm install"]
)
def test_help_fills_the_terminal_and_breaks_no_line_before_its_end(command: str) -> None:
    said = run_cli(*command.split(), "--help", columns=900).stdout
    description, _, panels = said.partition("╭")
    assert description.startswith(f"Usage: {f'fairlead {command}'.strip()} ")
    assert all(
        len(paragraph.splitlines()) == 1 for paragraph in description.split("\n\n") if paragraph.strip()
    )
    rows = [line for line in panels.splitlines() if line.startswith("│")]
    assert [row for row in rows if row[2] == " "] == []


WITHOUT_FORMS = {"demo", "up", "feed", "watchdog", "top", "config", "push", "install", "schema"}
"""Commands that run until they are ended, write files, or print a schema, which is JSON by itself."""


def test_every_other_command_prints_for_programs_too() -> None:
    without = {
        name
        for name, command in words_of(application())
        if not any(
            parameter == "output" or hasattr(its.default, "output")
            for parameter, its in inspect.signature(command).parameters.items()
        )
    }
    assert without == WITHOUT_FORMS


@pytest.mark.parametrize("typed", [[], ["--help"], ["sumbit"], ["queue"], ["policy", "show"]])
def test_a_command_that_is_named_first_is_the_only_one_that_is_put_together(typed: list[str]) -> None:
    whole, found = ({name for name in app if name[0] != "-"} for app in (application(), application(typed)))
    assert len(whole) > 15
    assert found == (whole & set(typed[:1]) or whole)


def test_the_version_is_told_without_the_command_line() -> None:
    loaded = loaded_by(
        "sys.argv[1:] = ['--version']; import contextlib, fairlead_cli.__main__ as entry\n"
        "with contextlib.suppress(SystemExit): entry.main()\nimport sys"
    )
    assert version("fairlead-cli") in loaded
    assert not {"cyclopts", "asyncio", "msgspec", "rich"} & loaded


def test_a_command_that_a_script_runs_in_the_background_hears_ctrl_c() -> None:
    deaf = (
        "import contextlib, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv[1:] = ['--version']\n"
        "import fairlead_cli.__main__ as entry\n"
        "with contextlib.suppress(SystemExit): entry.main()\n"
        "signal.raise_signal(signal.SIGINT)"
    )
    ended = subprocess.run([sys.executable, "-c", deaf], capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in ended.stderr


async def test_a_closed_terminal_ends_no_command_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_on_signals() as end:
            signal.raise_signal(signal.SIGHUP)
            assert not await happens(end, within=0.05)
            signal.raise_signal(signal.SIGTERM)
            assert await happens(end, within=5)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_wrong_words_end_with_code_2_and_no_stack_trace() -> None:
    wrong = (
        ["submit", "--no-such-flag"],
        ["demo", "--seconds", "0"],
        ["up", "--gang-fit"],
        ["up", "--kubeconfig", ""],
    )
    for words in wrong:
        ended = run_cli(*words)
        assert ended.returncode == 2, words
        assert "Traceback" not in ended.stderr + ended.stdout


def test_a_demand_must_be_a_pair() -> None:
    flags = JobFlags(cluster="any", tenant="a", demand=["nvidia.com/gpu"])
    with pytest.raises(InputError, match="NAME=QUANTITY"):
        gather(None, flags)


def test_flags_make_a_job() -> None:
    flags = JobFlags(
        cluster="sim", tenant="a", gpus="2", memory="4Gi", demand=["x=1"], job_class="urgent", run_seconds=3.0
    )
    [job] = gather(None, flags)
    assert (job.cluster, job.tenant) == ("sim", "a")
    assert job.id.startswith("job-")
    assert job.body == {
        "id": job.id,
        "class": "urgent",
        "run_seconds": 3.0,
        "demand": {"nvidia.com/gpu": "2", "memory": "4Gi", "x": "1"},
    }


def test_flags_say_what_the_pods_run() -> None:
    flags = parsed(
        "submit --tenant a --gpus 1 --image busybox --kind pod-group --env A=1=2 --env B= "
        "--command 'python train.py --lr 0.1' --args '-v'"
    )["job"]
    assert isinstance(flags, JobFlags)
    (draft,) = gather(None, flags)
    assert draft.body["template"] == {
        "image": "busybox",
        "kind": "pod-group",
        "command": ["python", "train.py", "--lr", "0.1"],
        "args": ["-v"],
        "env": {"A": "1=2", "B": ""},
    }


@pytest.mark.parametrize(
    "wrong", [JobFlags(tenant="a", cpu="1", env=["A"]), JobFlags(tenant="a", cpu="1", command="echo 'x")]
)
def test_a_variable_or_command_that_cannot_be_read_is_said(wrong: JobFlags) -> None:
    with pytest.raises(InputError, match=r"--env|--command"):
        gather(None, wrong)


def test_without_flags_or_file_there_is_nothing_to_submit() -> None:
    with pytest.raises(InputError, match="nothing to submit"):
        gather(None, JobFlags(cluster="any", tenant="a"))


def test_weights_are_pairs() -> None:
    assert read_weights(None) is None
    assert read_weights("a=3, b=2.5") == {"a": 3.0, "b": 2.5}
    for wrong in ("a", "a=", "a=x", "a=0", "a=-1", "a=inf", "a=nan", "=3", ""):
        with pytest.raises(InputError, match="NAME=NUMBER"):
            read_weights(wrong)


@pytest.mark.parametrize("words", ["--version", "--help", "policy schema"])
@pytest.mark.parametrize(
    ("to", "said"), [(">/dev/full", "cannot be written: No space left"), (">&-", "standard output is closed")]
)
def test_a_result_that_cannot_be_written_is_an_error_in_one_line(words: str, to: str, said: str) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -m fairlead_cli {words} {to}', sys.executable],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={},
    )
    assert ended.returncode == 1
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1, ended.stderr


@pytest.mark.parametrize("locale", [{"PYTHONIOENCODING": "latin-1"}, {"PYTHONIOENCODING": "ascii"}])
def test_the_result_is_in_utf_8_whatever_the_locale(locale: dict[str, str], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("tenants: [{name: tëam-█}]", encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, "-m", "fairlead_cli", "policy", "show", str(policy), "-o", "json"],
        capture_output=True,
        check=False,
        timeout=60,
        env={"HOME": str(tmp_path), **locale},
    )
    assert shown.returncode == 0, shown.stderr.decode()
    assert msgspec.json.decode(shown.stdout)["tenants"][0]["name"] == "tëam-█"


@pytest.mark.parametrize(
    ("words", "environ", "place", "found"),
    [
        (["queue", "--pool", "t\udce9am"], {}, "argument 3", " (found 't\\xe9am')"),
        (["explain", "t\udce9am"], {}, "argument 2", " (found 't\\xe9am')"),
        (["queue", "--nats", "nats://me:t\udce9am@127.0.0.1:9"], {}, "argument 3", ""),
        (["queue"], {"FAIRLEAD_NATS_PASSWORD": "t\udce9am"}, "FAIRLEAD_NATS_PASSWORD", ""),
    ],
)
def test_what_is_given_in_another_encoding_is_refused_by_its_place(
    words: list[str], environ: dict[str, str], place: str, found: str
) -> None:
    """What may be a password is not said."""
    ended = subprocess.run(
        [sys.executable, "-m", "fairlead_cli", *words, "--nats", "nats://127.0.0.1:9"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environ,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == f"error: {place}: must be text in UTF-8{found}\n"


@pytest.mark.parametrize(
    "environ",
    [
        {"FAIRLEAD_NATS_URL": "http://127.0.0.1:9"},
        {"FAIRLEAD_NATS_URL": "nats://127.0.0.1:99999"},
        {"FAIRLEAD_NATS_URL": "nats://127.0.0.1:9", "FAIRLEAD_NATS_NKEY_SEED": "/dev/null"},
    ],
)
def test_an_address_or_a_key_that_is_none_is_wrong_input_and_not_a_server_that_is_away(
    environ: dict[str, str],
) -> None:
    ended = fairlead("queue", environ=environ | {"HOME": "/nowhere"})
    said, remedy = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert said.startswith(("error: address 1 of 1 ", "error: the NKey seed in /dev/null "))
    assert remedy.startswith("--nats URL or FAIRLEAD_NATS_URL says where NATS is")


def test_a_file_may_have_a_name_in_any_encoding(tmp_path: Path) -> None:
    policy = tmp_path / "p\udce9.yaml"
    policy.write_text("tenants: [{name: a}]", encoding="utf-8")
    shown = subprocess.run(
        [sys.executable, "-m", "fairlead_cli", "policy", "show", str(policy), "-o", "name"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={"HOME": str(tmp_path)},
    )
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.endswith(".yaml\n")


def test_of_failures_side_by_side_the_one_that_a_person_can_mend_is_told() -> None:
    full, ours = OSError(errno.ENOSPC, "No space left on device"), CommandError("nobody is there")

    async def fail_with(*leaves: Exception) -> None:
        raise ExceptionGroup("a live view", [ExceptionGroup("its tasks", list(leaves))])

    with pytest.raises(OSError, match="No space left"):
        run(fail_with(full))
    with pytest.raises(CommandError, match="nobody is there"):
        run(fail_with(full, ours))
