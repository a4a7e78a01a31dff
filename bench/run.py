"""Figures of this machine, a JSON object a line: `make bench`, or `bench/run.py NAME...` for some of them.

What must hold on any machine is a ratio measured in one run; absolute figures stand beside their aim.
"""

import asyncio
import sys

import bench_bus
import bench_growth
import bench_intake
import bench_kueue
import bench_kueue_load
import bench_kueue_order
import bench_order
import bench_recovery
import bench_scaling
import bench_slurm
import bench_stack
import bench_steps
import bench_telling
import bench_tracing
import bench_trees

BENCHES = {
    "order": bench_order.order,
    "snapshot": bench_order.snapshot,
    "anew": bench_order.anew,
    "event": bench_order.event,
    "levels": bench_order.levels,
    "trees": bench_trees.trees,
    "hdrf": bench_trees.hdrf,
    "scaling": bench_scaling.scaling,
    "replay": bench_bus.replay,
    "intake": bench_intake.intake,
    "idle": bench_stack.idle,
    "stack": bench_stack.stack,
    "steps": bench_steps.steps,
    "recovery": bench_recovery.recovery,
    "growth": bench_growth.growth,
    "telling": bench_telling.telling,
    "tracing": bench_tracing.tracing,
    "kueue": bench_kueue.kueue,
    "kueue-idle": bench_kueue.kueue_idle,
    "kueue-load": bench_kueue_load.kueue_load,
    "kueue-pace": bench_kueue_load.kueue_pace,
    "kueue-room": bench_kueue_load.kueue_room,
    "kueue-spare": bench_kueue_load.kueue_spare,
    "kueue-order": bench_kueue_order.kueue_order,
    "slurm": bench_slurm.slurm,
}


async def main(names: list[str]) -> None:
    """Run these, or all."""
    for name in names or list(BENCHES):
        await BENCHES[name]()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
