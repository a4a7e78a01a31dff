"""The base of each Fairlead service: settings, logs, health, metrics, signals, tracing, and how loops wait.

A service is `run_service(ItsSettings, main)` in its `__main__`; `main(settings, lifecycle)` is its composition root:

    async def main(settings: ScorerSettings, lifecycle: Lifecycle) -> None:
        async with connect(ConnectionSettings.of(settings), name="scorer", observer=lifecycle.observer) as bus:
            scorer = Scorer(bus, settings, lifecycle.replica)
            lifecycle.readiness.add("state", scorer.why_not_ready)
            async with lifecycle.supervise() as tasks:
                tasks.start("connection", bus.wait_closed())    # closed for good: the process ends
                tasks.start("score", scorer.run())

This library knows nothing of NATS: the `nats_*` settings and the observer fit the bus's protocols by their shape.
"""

import sys

# structlog takes rich along where it is installed, to draw in colours what no service prints: 0.1 s of CPU at each start.
if not {"rich", "structlog"} & sys.modules.keys():
    sys.modules["rich"] = None  # type: ignore[assignment] # so an import of it fails, as where it is not installed
    import structlog  # noqa: F401 # here, before anybody else

    del sys.modules["rich"]
