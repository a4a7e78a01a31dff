"""Time in tests: waiting for what has to come, clocks that stand still, tasks beside a block."""
