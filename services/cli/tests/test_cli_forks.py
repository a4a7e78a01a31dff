"""A large order is written by several processes: the same bytes, no process left behind, and never half a result for a whole."""

import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import pytest

from fairlead_cli.paper import arranging
from fairlead_cli.paper.forks import ForkEndedError, made
from fairlead_cli.paper.results import as_json
from fairlead_contracts.snapshot.read import read_snapshot
from fairlead_testkit.timing.awaiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")
# A worker of the tests has a thread that forks do without.
forks_here = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")

SIZES = {"large": 48_000, "nobody": 0, "one": 3, "tree": 1949, "two": 2048}
GPU = "nvidia.com/gpu"


def numbered(count: int) -> list[Callable[[], bytes]]:
    """Pieces of a result, some empty, some larger than a pipe."""
    return [partial(a_piece, number) for number in range(count)]


def a_piece(number: int) -> bytes:
    return b"" if number % 5 == 3 else b"%d," % number * (1 + number % 3 * 900_000)


def children() -> set[int]:
    return children_of(os.getpid())


def children_of(pid: int) -> set[int]:
    tasks = Path(f"/proc/{pid}/task")
    return {int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()}


@forks_here
@pytest.mark.parametrize("count", [0, 1, 2, 3, 10, 31])
@pytest.mark.parametrize("by", [1, 2, 3, 4])
def test_pieces_come_in_their_order_by_however_many(count: int, by: int) -> None:
    before = children()
    assert list(made(numbered(count), by=by)) == [piece() for piece in numbered(count)]
    assert children() == before


@forks_here
def test_a_process_that_was_killed_is_told_and_the_others_end() -> None:
    def killed() -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return b""

    before = children()
    with pytest.raises(ForkEndedError, match=r"not whole: .* was ended by SIGKILL"):
        list(made([*numbered(7), killed, *numbered(50)], by=3))
    assert children() == before


@forks_here
def test_a_piece_that_fails_is_told_with_its_cause(capfd: pytest.CaptureFixture[str]) -> None:
    def failing() -> bytes:
        raise MemoryError("no room for this piece")

    with pytest.raises(ForkEndedError, match=r"not whole: .* failed$"):
        list(made([*numbered(5), failing, *numbered(50)], by=2))
    assert "no room for this piece" in capfd.readouterr().err


@forks_here
def test_who_reads_no_further_leaves_no_process() -> None:
    before = children()
    pieces = made(numbered(100), by=2)
    assert next(pieces) == b"0,"
    assert len(children() - before) == 1
    pieces.close()
    assert children() == before


@forks_here
def test_without_room_for_processes_one_makes_all() -> None:
    before, (soft, hard) = children(), resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    try:
        # Room for one pipe; the ends of a second one find none.
        resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 3, hard))
        assert list(made(numbered(9), by=3)) == [piece() for piece in numbered(9)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        os.close(taken[0])
    assert children() == before


def jobs_of(pool: str, count: int) -> Iterator[dict[str, object]]:
    for number in range(count):
        yield {
            "id": f"{pool}-{number}",
            "tenant": f"{pool}-team-{number % 7}",
            "pool": pool,
            "submitted": 1_760_000_000 - number * 7919 % 2_000_000,
            "demand": {GPU: number % 5, "cpu": f"{number % 11 * 250}m"},
        }


def document_of(sizes: Mapping[str, int]) -> dict[str, object]:
    """A snapshot of pools of these sizes, one a tree in reserve mode."""
    teams = [{"name": f"{pool}-team-{number}", "pool": pool} for pool in sizes for number in range(7)]
    trees = [team | ({"parent": "org"} if team["pool"] == "tree" else {}) for team in teams]
    return {
        "now": 1_760_000_000,
        "policy": {"pools": [{"name": "tree", "members": ["c1/tree"], "mode": "reserve"}]},
        "pools": [{"name": pool, "capacity": {"cpu": 512, GPU: 64}} for pool in sizes],
        "tenants": [{"name": "org", "pool": "tree"}, *trees],
        "jobs": [job for pool, count in sizes.items() for job in jobs_of(pool, count)],
    }


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot's file of pools of all sizes."""
    path = tmp_path_factory.mktemp("forks") / "large.json"
    path.write_text(json.dumps(document_of(SIZES)))
    return path


class OrderCommand(NamedTuple):
    """The command on a file, with the first bytes out: it has all its processes, and waits for somebody to read on."""

    command: subprocess.Popen[bytes]
    output: IO[bytes]
    begun: bytes
    forks: set[int]

    def ended(self) -> tuple[int, bytes, str]:
        """The exit code of the command, and what it wrote."""
        rest, said = self.command.communicate(timeout=60)
        return self.command.returncode, self.begun + rest, said.decode()

    def left(self) -> list[int]:
        """The forks that are there still."""
        return [fork for fork in self.forks if is_there(fork)]


@contextmanager
def ordering(path: Path, *words: str, processors: int) -> Iterator[OrderCommand]:
    words = (sys.executable, "-m", "fairlead_cli", "order", str(path), "-o", "json", *words)
    environ = os.environ | {"PYTHON_CPU_COUNT": str(processors)}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe, env=environ, start_new_session=True) as command:
        assert command.stdout is not None
        begun = b""
        while len(begun) < len(b'{"pools":[{"name":'):
            begun += (more := os.read(command.stdout.fileno(), 64))
            assert more, "it ended"
        yield OrderCommand(command, command.stdout, begun, children_of(command.pid))
        if command.poll() is None:
            command.kill()


def is_there(pid: int) -> bool:
    """Whether it is, and no zombie that nobody here can take notice of."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@forks_here
def test_parts_of_an_order_are_the_same_by_one_process_and_by_three() -> None:
    snapshot = read_snapshot(document_of(SIZES | {"large": 2100}))
    for levels in (False, True):
        planned = arranging.order(snapshot, levels=levels)
        assert len({b"".join(as_json(planned, snapshot.now, by=by)) for by in (1, 3)}) == 1


def test_an_order_has_the_same_bytes_by_one_process_and_by_three(large: Path) -> None:
    with ordering(large, "--levels", processors=1) as alone:
        assert not alone.forks, "a single processor needs no second process"
        code, whole, said = alone.ended()
    assert (code, said) == (0, "")
    pools = json.loads(whole)["pools"]
    assert {pool["name"]: len(pool["order"]) for pool in pools} == SIZES
    assert all([job["rank"] for job in pool["order"]] == list(range(len(pool["order"]))) for pool in pools)
    with ordering(large, "--levels", processors=3) as several:
        assert len(several.forks) == 2, "the command is the third"
        assert several.ended() == (0, whole, "")


def test_a_killed_process_makes_the_command_fail(large: Path) -> None:
    with ordering(large, processors=2) as order:
        os.kill(max(order.forks), signal.SIGKILL)
        code, found, said = order.ended()
    assert code == 1
    assert said.startswith(
        "error: the result is not whole: a process that made a part of it was ended by SIGKILL\n"
    )
    assert "PYTHON_CPU_COUNT=1" in said
    assert not found.endswith(b"]}\n")
    assert not order.left()


def test_a_reader_that_leaves_ends_all_processes(large: Path) -> None:
    with ordering(large, processors=2) as order:
        order.output.close()
        assert order.command.wait(60) == 0
        assert order.command.stderr is not None
        assert order.command.stderr.read() == b""
    assert len(order.forks) == 1
    assert not order.left()


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have what is started hear Ctrl-C: a shell that starts a test run in the background has it ignored, by what that starts, too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_all_processes(large: Path) -> None:
    with ordering(large, processors=2) as order:
        os.killpg(order.command.pid, signal.SIGINT)
        code, _, said = order.ended()
    assert (code, said) == (130, "")
    assert not order.left()


async def test_processes_end_when_the_command_is_killed(large: Path) -> None:
    with ordering(large, processors=2) as order:
        os.kill(order.command.pid, signal.SIGKILL)
        await eventually(lambda: not order.left(), 30, what="no fork is left")
