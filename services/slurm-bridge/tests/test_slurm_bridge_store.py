"""The bridge's memory over restarts."""

import stat
from pathlib import Path

import pytest

from fairlead_slurm_bridge.errors import SubmissionStoreError
from fairlead_slurm_bridge.store import SubmissionStore, SubmittedJob


def test_what_was_remembered_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "new" / "bridge.db"
    store = SubmissionStore(path)
    store.keep_fence(7)
    store.close()
    again = SubmissionStore(path)
    assert again.fence() == 7
    again.close()


def test_a_number_that_slurm_gave_again_is_of_the_last_submission(store: SubmissionStore) -> None:
    for name, at in (("later", 9.0), ("first", 1.0)):
        made = SubmittedJob(digest=name, job="2", queue="gpu", at=at)
        store.note_asked("vision", name, made)
    assert {key: mark.submission for key, mark in store.marks().items()} == {("vision", "2"): "later"}


def test_a_file_that_is_none_of_ours_is_said(tmp_path: Path) -> None:
    path = tmp_path / "bridge.db"
    path.write_text("no database, and long enough to be looked at as one" * 100)
    with pytest.raises(SubmissionStoreError, match=r"bridge\.db"):
        SubmissionStore(path)


@pytest.mark.parametrize("stood", [False, True])
def test_the_file_and_those_beside_it_are_for_their_owner_alone(tmp_path: Path, stood: bool) -> None:
    """Also one that stood before, as an earlier release made it."""
    if stood:
        (tmp_path / "bridge.sqlite").touch(mode=0o644)
    store = SubmissionStore(tmp_path / "bridge.sqlite")
    store.keep_fence(1)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    store.close()
    assert modes == dict.fromkeys(("bridge.sqlite", "bridge.sqlite-shm", "bridge.sqlite-wal"), 0o600)
