"""The `fairlead` command under the shipped NATS accounts: as a tenant from its own account, and as an operator."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead_testkit.fleets.fleet import CLUSTER, Fleet, one_pool
from fairlead_testkit.processes import command
from fairlead_testkit.timing.awaiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

TENANTS = ("team-a", "team-b")
POLICY = one_pool(TENANTS)


async def fairlead(environ: Mapping[str, str], *words: str) -> tuple[int, str]:
    """Runs the command; its exit code and all that it says."""
    ended = await asyncio.to_thread(command.fairlead, *words, environ=environ)
    return ended.returncode, ended.stdout + ended.stderr


async def test_a_tenant_submits_hears_and_asks_from_its_own_account(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, gpus=2, scorers=1)
    async with fleet.running():
        team_a = {**fleet.person("tenant.team-a"), "FAIRLEAD_TENANT": "team-a"}
        job = ("submit", "--gpus", "1", "--id", "one", "--run-seconds", "0.5")
        steps = ["accepted on sim", "started after", "succeeded after"]

        code, said = await fairlead(team_a, *job, "--cluster", "sim")
        assert (code, [step for step in steps if step in said]) == (0, steps), said

        # Published again it is the same job, and the last that was said of it is said again.
        code, said = await fairlead(team_a, *job, "--cluster", "sim")
        assert (code, steps[-1] in said) == (0, True), said

        code, said = await fairlead(team_a, "submit", "--gpus", "1", "--run-seconds", "0.5")
        assert code == 0, said  # for any cluster: routed by a scorer
        code, said = await fairlead(team_a, "submit", "--gpus", "-1")
        assert (code, "refused, demand" in said) == (1, True), said

        wide = ("submit", "--gpus", "2", "--run-seconds", "600", "--no-follow", "--cluster", "sim")
        for _ in range(2):  # one of them waits
            code, said = await fairlead(team_a, *wide)
            assert code == 0, said

        async def one_waits() -> bool:
            said = (await fairlead(team_a, "queue"))[1]
            return "1 wait" in said

        await eventually(one_waits, 30, what="the second of them waits")
        for question in ("tenants", "explain one"):
            code, said = await fairlead(team_a, *question.split())
            assert (code, "team-a" in said) == (0, True), said
        denied = [
            ("queue", "--tenant", "team-b"),
            ("submit", "--tenant", "team-b", "--gpus", "1"),
            ("pause",),
            ("policy", "show"),
            ("snapshot",),
            ("top",),
        ]
        for words, (code, said) in zip(
            denied, await asyncio.gather(*(fairlead(team_a, *words) for words in denied)), strict=True
        ):
            assert (code, "Traceback" in said) == (1, False), (words, said)
            assert "may not publish" in said, (words, said)


async def test_an_operator_steers_asks_and_submits_for_any_tenant(tmp_path: Path) -> None:
    fleet = Fleet(tmp_path, policy=POLICY, gpus=2, scorers=1)
    async with fleet.running():
        ann = fleet.person()
        policy = tmp_path / "policy.yaml"
        policy.write_text(
            f"pools: [{{name: gpu, members: [{CLUSTER}/gpu]}}]\ntenants: [{{name: team-a, weight: 2}}]\n"
        )
        (tmp_path / "jobs.jsonl").write_text(
            '{"tenant": "team-a", "demand": {"nvidia.com/gpu": 1}, "run_seconds": 0.5}\n'
            '{"tenant": "team-b", "demand": {"nvidia.com/gpu": 1}, "run_seconds": 0.5}\n'
        )
        for words in (
            ("submit", str(tmp_path / "jobs.jsonl"), "--cluster", "sim"),
            ("queue",),
            ("tenants",),
            ("explain", "--tenant", "team-b", "-o", "json", "none-such"),
            ("top",),
            ("snapshot",),
            ("pause",),
            ("resume",),
            ("release",),
            ("policy", "show"),
            ("policy", "history"),
            ("policy", "diff", str(policy)),
            ("policy", "apply", str(policy)),
        ):
            code, said = await fairlead(ann, *words)
            assert code == (1 if words[0] == "explain" or words[1:2] == ("diff",) else 0), (words, said)
            assert "denie" not in said, (words, said)
        code, said = await fairlead(ann, "nats", "provision", "sim")
        assert (code, "may not publish" in said) == (1, True), said
        code, said = await fairlead(fleet.person("provisioner"), "nats", "provision", "sim", "--dry-run")
        assert (code, "nothing is missing" in said) == (0, True), said
