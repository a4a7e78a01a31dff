"""Service processes: started, awaited by what they say, stopped, killed, paused; their log shown on failure."""

import asyncio
from pathlib import Path

import pytest

from fairlead_testkit import NeverHappenedError, OwnProcessError, ServiceProcess, eventually, running


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    monkeypatch.setenv("FAIRLEAD_STRANGE", "of the developer's own shell")


def tiny(directory: Path, *arguments: str, name: str = "tiny", **settings: object) -> ServiceProcess:
    return ServiceProcess("tiny", directory, settings, arguments, module="tiny_service", name=name)


async def test_a_process_is_told_its_settings_and_nothing_else(tmp_path: Path) -> None:
    with tiny(tmp_path, "--flag", color=["blue", {"red": True}], absent=None) as process:
        told = await (await process.ready()).logged("told")
        assert (told["color"], told["flags"], told["strange"]) == ("blue,red=true", ["--flag"], None)
        assert await process.stop() == 0


async def test_a_killed_process_starts_again_and_only_its_new_lines_count(tmp_path: Path) -> None:
    with tiny(tmp_path) as process:
        await process.ready()
        process.kill()
        assert not process.running
        await process.start().ready()
        # Its port may be the same again: the lines are counted.
        assert [line["event"] for line in process.events()].count("health listening") == 1
        assert process.log.count("listening") == 2


async def test_a_paused_process_lives_and_does_not_answer(tmp_path: Path) -> None:
    with tiny(tmp_path) as process:
        await process.ready()
        process.pause()
        assert process.running
        assert not (await process.health()).ready
        process.resume()
        await process.ready()
        process.pause()
        assert await process.stop() == 0


async def test_a_process_that_ends_while_awaited_is_told_with_its_log(tmp_path: Path) -> None:
    with tiny(tmp_path, mode="die") as process:
        with pytest.raises(OwnProcessError, match="cannot start"):
            await process.ready()
        assert process.exit_code == 1


async def test_the_log_is_shown_when_the_test_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def failing_test() -> None:
        with tiny(tmp_path) as process:
            await process.ready()
            raise AssertionError

    with pytest.raises(AssertionError):
        await failing_test()
    assert "health listening" in capsys.readouterr().err


async def test_several_run_side_by_side_and_none_is_left(tmp_path: Path) -> None:
    one, two = tiny(tmp_path, name="one"), tiny(tmp_path, name="two")
    with running(one, two):
        await one.ready()
        await two.ready()
    assert not one.running
    assert not two.running


async def test_eventually_gives_what_came_true() -> None:
    found = iter([0, None, "", "here"])
    assert await eventually(lambda: next(found)) == "here"

    async def at_once() -> int:
        return 7

    assert await eventually(at_once) == 7


async def test_eventually_waits_for_an_event_instead_of_polling() -> None:
    changed = asyncio.Event()
    seen: list[int] = []
    loop = asyncio.get_running_loop()

    def condition() -> bool:
        seen.append(len(seen))
        loop.call_soon(changed.set)
        return len(seen) == 3

    assert await eventually(condition, on=changed)
    assert seen == [0, 1, 2]


async def test_what_never_happens_is_told_with_its_last_value() -> None:
    with pytest.raises(NeverHappenedError, match=r"pigs fly.*False"):
        await eventually(lambda: False, 0.01, what="pigs fly")
    with pytest.raises(NeverHappenedError):
        await eventually(lambda: False, 0.01, on=asyncio.Event())
