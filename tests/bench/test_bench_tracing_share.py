"""Part of some processes' CPU that tracing takes, by samples of their main threads and the clock of the thread that sends."""

import pytest
from bench_tracing_share import Looked, share_of


def test_each_process_counts_by_its_own_samples_and_its_own_cpu() -> None:
    busy = Looked(process=10.0, main=9.0, sender=0.5, samples=1000, telling=10)
    quiet = Looked(process=2.0, main=2.0, sender=0.0, samples=100, telling=50)
    share = share_of([busy, quiet])
    assert share.telling == pytest.approx((9.0 * 0.01 + 2.0 * 0.5) / 12.0)
    assert share.sending == pytest.approx(0.5 / 12.0)
    assert 0.0 < share.within < share.telling


def test_a_process_that_was_never_seen_telling_adds_nothing() -> None:
    assert share_of([Looked(5.0, 5.0, 0.0, 0, 0)]) == (0.0, 0.0, 0.0)


def test_what_was_done_before_a_moment_does_not_count() -> None:
    before, after = Looked(1.0, 0.5, 0.25, 7, 2), Looked(3.0, 2.0, 0.5, 17, 3)
    assert after.since(before) == (2.0, 1.5, 0.25, 10, 1)
