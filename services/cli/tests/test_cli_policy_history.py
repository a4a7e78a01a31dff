"""The policy's history as a person sees it on a real nats-server: differences, revisions, the way back."""

import json
import re
from pathlib import Path

import msgspec
import pytest
import yaml

from fairlead_bus import Asked, Bucket, Bus
from fairlead_cli.errors import CommandError, InputError, OvertakenError
from fairlead_cli.policy.applying import ApplyTerms, put_in_force
from fairlead_cli.policy.file_commands import check_file, print_differences, print_file
from fairlead_cli.policy.history import print_history, put_back
from fairlead_cli.policy.in_force import print_policy
from fairlead_cli.policy.members import KnownPools, known_pools
from fairlead_cli.policy.store import Revision, StoredPolicy, in_force, stored_policy, swap
from fairlead_contracts import subjects, topology
from fairlead_contracts.base.codec import to_json
from fairlead_contracts.messages.control import Mode
from fairlead_contracts.policyfile.document import Grant
from fairlead_testkit.by_hand.people import say
from fairlead_testkit.inputs.builders import a_pool_tenants, a_tenant_line, a_tenant_share, a_tenants_reply

pytestmark = pytest.mark.integration

FIRST = "tenants: [{name: a, weight: 3}, {name: b}]\n"
SECOND = "tenants: [{name: b}, {name: a, weight: 2}]\nwindow: 16\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(FIRST)
    second.write_text(SECOND)
    return first, second


async def weight_of_a(bus: Bus) -> float:
    found = await stored_policy(bus)
    assert found is not None
    return next(tenant.weight for tenant in found[0].tenants if tenant.name == "a")


async def test_a_difference_is_said_key_by_key(
    nats: str, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = files
    assert await print_differences(nats, first)  # nothing is in force yet: all of it is new
    assert "+ tenants[a].weight: 3.0" in capsys.readouterr().out
    await put_in_force(nats, first)
    capsys.readouterr()
    assert not await print_differences(nats, first)
    assert await print_differences(nats, second)
    # Tenants go by name: their order in the file is no difference.
    assert capsys.readouterr().out.splitlines() == [
        "- tenants[a].weight: 3.0",
        "+ tenants[a].weight: 2.0",
        "- window: 32",
        "+ window: 16",
    ]


def test_a_file_of_the_older_controller_is_shown_as_what_it_means(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "wdrf.env"
    path.write_text("AGING_COEFFICIENT=0.1\nMAX_AGING_TIME=3600\n")
    print_file(path, KnownPools, form="json")
    shown = msgspec.json.decode(capsys.readouterr().out)
    assert (shown["class_mode"], shown["aging"]["entitlement_per_day"]) == ("multiplicative", 8640.0)
    print_file(path, KnownPools, form="table")
    assert "class_mode: multiplicative" in capsys.readouterr().out


async def test_an_earlier_revision_is_put_back_as_a_new_one(
    nats: str, bus: Bus, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = files
    await put_in_force(nats, first)
    with pytest.raises(CommandError, match="no revision before"):
        await put_back(nats, None)
    await put_in_force(nats, second)
    await put_back(nats, None)
    assert await weight_of_a(bus) == 3
    capsys.readouterr()
    await print_history(nats, form="json")
    known = [msgspec.json.decode(line, type=Revision) for line in capsys.readouterr().out.splitlines()]
    windows = [one.policy.window for one in known if one.policy is not None]
    assert windows == [32, 16, 32]
    await put_back(nats, known[1].revision)
    assert await weight_of_a(bus) == 2
    with pytest.raises(CommandError, match="99 of the policy is not kept"):
        await put_back(nats, 99)


async def test_a_revert_right_after_an_approval_names_the_revision_before_the_last_change(
    nats: str, bus: Bus, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = files
    await put_in_force(nats, first)
    await put_in_force(nats, second)
    standing = await in_force(bus)
    assert standing.policy is not None
    granted = Grant(tenant="a", classes=["urgent"], job="uid-1", by="anna")
    await swap(bus, msgspec.structs.replace(standing.policy, grants=[granted]), standing, "anna")
    capsys.readouterr()
    await put_back(nats, None)
    told = capsys.readouterr().out
    assert "nothing was changed" in told
    found = re.search(r"`fairlead policy revert (\d+)` puts it back", told)
    assert found, told
    await put_back(nats, int(found[1]))
    assert await weight_of_a(bus) == 3


async def test_apply_and_check_name_tenants_with_jobs_in_the_queue_that_a_file_leaves_out(
    nats: str, bus: Bus, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        a_tenant_line(standing=a_tenant_share(tenant=tenant, waiting=waiting))
        for tenant, waiting in (("a", 2), ("gone", 3), ("idle", 0))
    ]
    reply = a_tenants_reply(pools=[a_pool_tenants(pool=pool, tenants=lines) for pool in ("p", "q")])

    async def answer(_: Asked) -> bytes:
        return to_json(reply)

    await bus.serve(subjects.ask("tenants"), answer)
    await put_in_force(nats, files[0])
    told = capsys.readouterr().err
    assert "not in this policy: gone (6 waiting). Unless" in told
    known = await known_pools(nats)
    check_file(files[0], lambda: known)
    assert "not in this policy: gone (6 waiting). Unless" in capsys.readouterr().err
    files[0].write_text(FIRST + "unlisted_weight: 1\n")
    check_file(files[0], lambda: known)
    assert "not in this policy" not in capsys.readouterr().err


async def test_history_says_what_each_revision_changed(
    nats: str, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError, match="no policy yet"):
        await print_history(nats, form="table")
    for path in files:
        await put_in_force(nats, path)
    capsys.readouterr()
    await print_history(nats, form="table")
    first, second, *changes = capsys.readouterr().out.splitlines()
    assert "in force" not in first
    assert second.endswith("in force")
    assert "  + tenants[a].weight: 2.0" in changes


async def test_history_and_a_refusal_say_who(
    nats: str, files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = files
    await put_in_force(nats, first, ApplyTerms(by="anna"))
    capsys.readouterr()
    await print_policy(nats, form="table")
    mine = tmp_path / "mine.yaml"
    mine.write_text(capsys.readouterr().out.replace("window: 32", "window: 5"))
    await put_in_force(nats, second, ApplyTerms(by="Bärbel <b@example.org>"))
    await put_back(nats, None, by="carl")
    await put_in_force(nats, second)  # of this one nobody is told
    with pytest.raises(OvertakenError, match=r"Bärbel <b@example[.]org> and carl changed"):
        await put_in_force(nats, mine)
    capsys.readouterr()
    await print_history(nats, form="json")
    known = [msgspec.json.decode(line, type=Revision) for line in capsys.readouterr().out.splitlines()]
    assert [one.by for one in known] == ["anna", "Bärbel <b@example.org>", "carl", ""]
    await print_history(nats, form="table")
    assert ", by carl" in capsys.readouterr().out


async def test_history_says_who_approved_paused_and_resumed_when_and_why(
    nats: str, bus: Bus, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first, _ = files
    await put_in_force(nats, first, ApplyTerms(by="anna"))
    await say(bus, Mode.PAUSED, "gpu")
    found = await stored_policy(bus)
    assert found is not None
    grant = Grant(tenant="a", classes=["urgent"], job="train", by="bob", why="a demo")
    changed = msgspec.structs.replace(found[0], grants=[grant])
    await swap(bus, changed, StoredPolicy(revision=found[1], policy=found[0]), "bob")
    await say(bus, Mode.ACTIVE)
    capsys.readouterr()
    await print_history(nats, form="table")
    one, paused, two, granted, resumed = capsys.readouterr().out.splitlines()
    assert one.startswith("revision 1, since ")
    assert re.match(r"pool gpu: paused, since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC, by ", paused)
    assert paused.endswith(", by somebody: a test")
    assert two.endswith(", by bob, in force")
    assert granted == "  + urgent for job train of a, by bob: a demo"
    assert resumed.startswith("all pools: active, since 20")
    await print_history(nats, form="json")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["revision"], line.get("pool"), line.get("mode")) for line in lines] == [
        (1, None, None),
        (2, "gpu", "paused"),
        (3, None, None),
        (4, None, "active"),
    ]


async def test_a_revision_that_this_release_does_not_read_is_left_alone(
    nats: str, bus: Bus, files: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    await Bucket(bus, topology.POLICY).create(subjects.DOCUMENT_KEY, b'{"version": 7}')
    with pytest.raises(CommandError, match="no revision before"):
        await put_back(nats, None)
    with pytest.raises(CommandError, match="written last, does not validate; no revision that does is kept"):
        await put_in_force(nats, files[0])
    await put_in_force(nats, files[0], ApplyTerms(force=True))
    with pytest.raises(CommandError, match="does not validate"):
        await put_back(nats, None)
    capsys.readouterr()
    await print_history(nats, form="table")
    assert "does not validate: version: this release reads" in capsys.readouterr().out


async def test_what_is_looked_at_and_put_in_force_is_told_to_programs(
    nats: str, files: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def told() -> dict[str, object]:
        [line] = capsys.readouterr().out.splitlines()
        found: dict[str, object] = json.loads(line)
        return found

    first, second = files
    await put_in_force(nats, first, form="json")
    assert told() == {"revision": 1, "written": True, "notes": []}
    await put_in_force(nats, first, form="yaml")
    assert yaml.safe_load(capsys.readouterr().out) == {"revision": 1, "written": False, "notes": []}
    assert await print_differences(nats, second, form="json")
    compared = told()
    assert (compared["revision"], compared["refused"]) == (1, "")
    assert "+ window: 16" in str(compared["changes"])
    assert await print_differences(nats, second, form="name")
    assert "window" in capsys.readouterr().out.splitlines()
    await put_in_force(nats, second, form="name")
    assert capsys.readouterr().out == "2\n", "as `revert` takes it"
    await print_policy(nats, form="name")
    assert capsys.readouterr().out == "2\n"
    await put_back(nats, None, form="json")
    assert told()["revision"] == 3
    check_file(first, KnownPools, form="json")
    checked = told()
    assert (checked["valid"], checked["tenants"], checked["problems"]) == (True, 2, [])
    broken = tmp_path / "broken.yaml"
    broken.write_text("windo: 3\n")
    with pytest.raises(InputError):
        check_file(broken, KnownPools, form="json")
    checked = told()
    assert not checked["valid"]
    assert "windo" in str(checked["problems"])
