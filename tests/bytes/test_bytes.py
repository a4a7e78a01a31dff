"""The bytes of orders, levels, decisions and explanations, of some hundred random pools of every kind of policy.

What is recorded are digests, one of each case and kind: a change of any byte is seen, and has to be meant. By hand:

    python tests/bytes/test_bytes.py check               what differs from what is recorded (`make bytes`)
    python tests/bytes/test_bytes.py record              record anew, after a rule was changed on purpose; where orders
                                                         are others, raise `ORDER_RULES`
    python tests/bytes/test_bytes.py show CASE [KIND]    the bytes themselves
    python tests/bytes/test_bytes.py diff COMMIT CASE    how they differ from those of another commit
"""

import asyncio
import contextlib
import difflib
import gc
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec
import pytest

from fairlead_bus import Asked
from fairlead_cli.errors import CommandError, InputError
from fairlead_cli.options import Format
from fairlead_cli.paper.explaining import ReplyWithFits, explanations, print_explanations
from fairlead_cli.paper.order_run import put_in_order
from fairlead_contracts import subjects
from fairlead_contracts.base.errors import DocumentError
from fairlead_contracts.base.instants import HOUR, Micros
from fairlead_contracts.messages.members import LeaderLease
from fairlead_contracts.messages.questions import ExplainQuestion, QueueQuestion, TenantsQuestion
from fairlead_contracts.messages.state import JobState, Phase, State, subject_of
from fairlead_contracts.snapshot.read import decode_snapshot
from fairlead_contracts.snapshot.types import Snapshot
from fairlead_contracts.snapshot.write import encode_snapshot
from fairlead_policy.levels.operators import OperatorWords
from fairlead_policy.snapshot.from_state import snapshot_of
from fairlead_policy.snapshot.ordering import policy_of
from fairlead_scorer.decide.decision import decide
from fairlead_scorer.query.explaining import Explainer
from fairlead_scorer.query.questions import Questions
from fairlead_scorer.query.reservations import ReserveView
from fairlead_scorer.query.shard_asking import ShardAsker
from fairlead_scorer.query.steering_view import SteeringView
from fairlead_scorer.state.cluster_cache import ClusterCache
from fairlead_scorer.state.past import FinishedRun
from fairlead_testkit.by_hand.scorer_ports import NobodyElse, StatedLeaders
from fairlead_testkit.inputs.recorded_facts import CLUSTER, document_of, states_of
from fairlead_testkit.inputs.recorded_pools import RecordedPool, recorded_pools
from fairlead_testkit.timing.in_hand import all_steps

DIGESTS = Path(__file__).with_name("digests.json")
REPOSITORY = Path(__file__).parents[2]
SHARDS = 3
EXPLAINED = 3
"""Jobs of a case that are explained: the first, the middle one and the last by their names."""
FEW = 6
"""Number of cases of which one is looked at in each run."""
DIGITS = 16
"""Digits of a SHA-256 in hexadecimal: 64 bits tell any change of a byte."""

LEADERS = StatedLeaders(
    *(
        LeaderLease(role=role, cluster=CLUSTER, replica="a", epoch=1, renewed=0)
        for role in ("admitter", "watcher", "checker")
    )
)
"""Leaders who have nothing to say."""

type Bytes = dict[str, bytes]
"""Recorded bytes by kind."""


# On paper -------------------------------------------------------------------------------------------------------------


def on_paper(case: RecordedPool) -> Bytes:
    """Output of `fairlead order` for the case, by the functions of the command."""
    snapshot = msgspec.json.encode(case.snapshot)
    names = sorted(str(job["id"]) for job in _jobs(case))
    found = {
        "snapshot": snapshot,
        "order-json": _said(snapshot, lambda path: put_in_order(path, levels=False, form="json")),
        "order-table": _said(snapshot, lambda path: put_in_order(path, levels=False, form="table")),
        "levels-json": _said(snapshot, lambda path: put_in_order(path, levels=True, form="json")),
        "levels-table": _said(snapshot, lambda path: put_in_order(path, levels=True, form="table")),
    }
    explained: dict[str, ReplyWithFits] = {}

    def explain(path: Path, name: str, form: Format) -> None:
        # What takes the time is the same for all forms.
        if name not in explained:
            explained[name] = explanations(path, name)
        print_explanations(explained[name], name, form=form)

    forms: tuple[tuple[Format, str], ...] = (("json", "explain-json"), ("table", "explain-text"))
    for form, kind in forms:
        said = [
            _said(snapshot, lambda path, name=name: explain(path, name, form))  # type: ignore[misc] # noqa: B023 # called at once
            for name in _some(names)
        ]
        found[kind] = b"".join(said)
    return found


def _jobs(case: RecordedPool) -> list[dict[str, object]]:
    jobs = case.snapshot["jobs"]
    assert isinstance(jobs, list)
    return jobs


def _some(names: list[str]) -> list[str]:
    return [names[len(names) * number // EXPLAINED] for number in range(EXPLAINED)] if names else []


def _said(snapshot: bytes, command: Callable[[Path], object]) -> bytes:
    """Output of the command, and what it refuses."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        file.write(snapshot)
        file.flush()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                command(Path(file.name))
            except (CommandError, InputError) as error:
                problems = getattr(error, "problems", ())
                err.write("\n".join([str(error), *map(str, problems)]))
            finally:
                gc.enable()  # the command ends its process
    out.flush()
    wrapped = out.buffer
    assert isinstance(wrapped, io.BytesIO)
    return wrapped.getvalue() + err.getvalue().replace(file.name, "FILE").encode()


# In a scorer ----------------------------------------------------------------------------------------------------------


def in_a_scorer(case: RecordedPool) -> Bytes:
    """Decisions and answers of a scorer by the same facts, also after some of them have changed."""
    try:
        snapshot = decode_snapshot(msgspec.json.encode(case.snapshot))
        cache = _cache(snapshot)
    except DocumentError:
        return {}
    states = list(states_of(snapshot))
    now = snapshot.now
    document = document_of(snapshot, policy_of(snapshot), shards=SHARDS)
    found = {
        "decisions": _decisions(cache, now),
        "answers": asyncio.run(_answers(cache, snapshot, now)),
        "stated": encode_snapshot(snapshot_of({subject_of(one): one for one in states}, document, now)),
    }
    all_steps(cache.learning(dict(_changes(states, now))))
    later = now + HOUR
    return found | {
        "decisions-later": _decisions(cache, later),
        "answers-later": asyncio.run(_answers(cache, snapshot, later)),
    }


def _cache(snapshot: Snapshot) -> ClusterCache:
    cache = ClusterCache()
    all_steps(cache.adopting(document_of(snapshot, policy_of(snapshot), shards=SHARDS), 1))
    all_steps(cache.learning({subject_of(one): one for one in states_of(snapshot)}))
    cache.hear(_runs_over(snapshot))
    return cache


def _runs_over(snapshot: Snapshot) -> Iterator[FinishedRun]:
    for tenant in snapshot.tenants:
        if tenant.past_use:
            started, ended = snapshot.now - 3 * HOUR, snapshot.now - HOUR
            queue, uid = f"{snapshot.pools[0].name}-main", f"over-{tenant.name}"
            yield FinishedRun(
                queue=queue,
                started=started,
                ended=ended,
                demand=tenant.past_use,
                cluster=CLUSTER,
                scope=tenant.name,
                uid=uid,
            )


def _changes(states: list[State], now: Micros) -> Iterator[tuple[str, State | None]]:
    """Changes to waiting jobs: each fourth is gone, each fourth starts, and each fourth asks for twice as much."""
    waiting = [one for one in states if isinstance(one, JobState) and one.phase is Phase.WAITING]
    for number, job in enumerate(waiting):
        match number % 4:
            case 0:
                yield subject_of(job), None
            case 1:
                started = msgspec.structs.replace(job, phase=Phase.RUNNING, started=now, rev=2)
                yield subject_of(job), started
            case 2:
                demand = {name: 2 * amount for name, amount in job.demand.items()}
                yield subject_of(job), msgspec.structs.replace(job, demand=demand, rev=2)


def _decisions(cache: ClusterCache, now: Micros) -> bytes:
    contents = [
        (name, shard, decide(pool, shard, now), pool.next_flip(shard, now))
        for name, pool in sorted(cache.pools.items())
        for shard in range(SHARDS)
    ]
    return msgspec.json.encode(contents)


async def _answers(cache: ClusterCache, snapshot: Snapshot, now: Micros) -> bytes:
    asker = ShardAsker(NobodyElse(), lambda _: True, timeout=1.0)
    reserved = ReserveView(cache, LEADERS)
    steering = SteeringView(cache, OperatorWords(), LEADERS, reserved, lambda _: [])
    explainer = Explainer(cache, asker, steering, reserved, traced=0.0)
    questions = Questions(cache, asker, explainer, steering, lambda: now)
    subject = subjects.ask("explain", None)

    def asked(question: msgspec.Struct) -> Asked:
        return Asked(subject=subject, payload=msgspec.json.encode(question), headers={})

    names = _some(sorted(job.id for job in snapshot.jobs))
    tenants = sorted({job.tenant for job in snapshot.jobs})[:1]
    answers = [
        await questions.queue(asked(QueueQuestion())),
        await questions.tenants(asked(TenantsQuestion())),
        *[await questions.explain(asked(ExplainQuestion(job=name))) for name in names],
        *[await questions.queue(asked(QueueQuestion(tenant=tenant))) for tenant in tenants],
    ]
    return b"\n".join(answers)


# Digests --------------------------------------------------------------------------------------------------------------


def bytes_of(case: RecordedPool) -> Bytes:
    """Bytes that are recorded of a case."""
    return on_paper(case) | in_a_scorer(case)


def digests_of(case: RecordedPool) -> dict[str, str]:
    """Digests of what the code gives now, by kind."""
    return {kind: hashlib.sha256(found).hexdigest()[:DIGITS] for kind, found in bytes_of(case).items()}


def recorded() -> dict[str, dict[str, str]]:
    """Digests that are recorded, by case and kind."""
    found: dict[str, dict[str, str]] = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return found


def all_digests() -> dict[str, dict[str, str]]:
    """Digests of all cases by case and kind, made on all processors."""
    cases = list(recorded_pools())
    with ProcessPoolExecutor() as pool:
        return dict(zip((case.name for case in cases), pool.map(digests_of, cases, chunksize=4), strict=True))


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The kinds in which a case differs."""
    return sorted(kind for kind in before.keys() | after.keys() if before.get(kind) != after.get(kind))


def few_cases() -> list[RecordedPool]:
    """Cases for each run of the tests, some of each kind; `make bytes` and `make deep` look at all."""
    return [case for case in recorded_pools() if int(case.name[-2:]) % FEW == 0]


@pytest.mark.timeout(600)
def test_bytes_of_some_pools_of_each_kind_are_as_recorded() -> None:
    known = recorded()
    found = {case.name: differences(known[case.name], digests_of(case)) for case in few_cases()}
    differ = {case: kinds for case, kinds in found.items() if kinds}
    assert not differ, f"`{Path(__file__).name} diff COMMIT CASE` shows how"


@pytest.mark.deep
@pytest.mark.timeout(1800)
def test_bytes_of_all_pools_are_as_recorded() -> None:
    assert all_digests() == recorded()


def test_every_kind_of_answer_is_told_of_most_cases() -> None:
    """A recorder that records refusals alone would hold nothing."""
    known = recorded()
    assert [case.name for case in recorded_pools()] == list(known)
    for kind in ("order-json", "explain-json", "levels-table", "decisions", "answers-later", "stated"):
        distinct = {one[kind] for one in known.values() if kind in one}
        assert len(distinct) > len(known) * 0.9, kind


def _shown(case: str, only: str | None) -> str:
    [wanted] = [one for one in recorded_pools() if one.name == case]
    parts = bytes_of(wanted)
    return "".join(
        f"== {kind}\n{_readable(found)}\n" for kind, found in parts.items() if only in (None, kind)
    )


def _readable(found: bytes) -> str:
    """JSON key by key, so that a difference is a line."""
    lines = []
    for line in found.decode().splitlines():
        try:
            lines.append(msgspec.json.format(line, indent=1))
        except msgspec.MsgspecError:
            lines.append(line)
    return "\n".join(lines)


def _shown_at(commit: str, case: str) -> str:
    """The same by the code of another commit, in a tree of its own."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        git = ["git", "-C", str(REPOSITORY), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            sources = os.pathsep.join(str(path) for path in tree.glob("*/*/src"))
            tool = [sys.executable, str(tree / "tests" / "bytes" / Path(__file__).name), "show", case]
            environment = os.environ | {"PYTHONPATH": sources}
            done = subprocess.run(tool, check=True, env=environment, stdout=subprocess.PIPE, text=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    return done.stdout


def main(command: str = "check", *words: str) -> int:
    """Runs a command of the tool; see above."""
    match command, words:
        case "check", ():
            known, found = recorded(), all_digests()
            kinds = {case: differences(known.get(case, {}), told) for case, told in found.items()}
            sys.stdout.writelines(f"{case}: {', '.join(told)}\n" for case, told in kinds.items() if told)
            return 1 if any(kinds.values()) else 0
        case "record", ():
            lines = ",\n".join(
                f" {json.dumps(case)}: {json.dumps(found)}" for case, found in all_digests().items()
            )
            DIGESTS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        case "show", (case, *kind):
            sys.stdout.write(_shown(case, kind[0] if kind else None))
        case "diff", (commit, case):
            before, after = _shown_at(commit, case), _shown(case, None)
            pair = before.splitlines(keepends=True), after.splitlines(keepends=True)
            sys.stdout.writelines(difflib.unified_diff(*pair, commit, "here"))
        case _:
            sys.stderr.write(__doc__ or "")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
