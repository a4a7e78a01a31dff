"""The page on what watchers, bridges and checkers do."""

from panels import Dashboard, Panel, Query

FRONTENDS = Dashboard(
    "fairlead-frontends",
    "Fairlead / Frontends",
    "Are Kubernetes and Slurm heard, obeyed and checked in time?",
    [
        Panel(
            "Who leads",
            "One of each speaks for its cluster, and the others stand by. None for more than three seconds: nobody is ready, "
            "or NATS is away; see the pods and their logs.",
            [
                Query("sum(fairlead_watcher_leads)", "watcher"),
                Query("sum(fairlead_slurm_bridge_leads)", "slurm-bridge"),
                Query("sum(fairlead_checker_leads)", "checker"),
            ],
        ),
        Panel(
            "Jobs that are stated",
            "What the frontends' own queues hold, as they were last read. A line that stands still while people submit is one "
            "that is not read any more: see what failed.",
            [
                Query("sum by (phase) (fairlead_watcher_stated_jobs)", "Kubernetes, {{phase}}"),
                Query("sum by (phase) (fairlead_slurm_bridge_stated_jobs)", "Slurm, {{phase}}"),
            ],
        ),
        Panel(
            "Slurm: time to read and to write, p99",
            "Reading grows with the jobs that are pending, a fifth of a second for 10,000. Seconds mean a slurmctld that is "
            "busy with something else: `sdiag` shows with what. A last reading that grows older is a slurmctld that cannot be read.",
            [
                Query("max(fairlead_slurm_bridge_age_seconds)", "since the last reading"),
                Query(
                    "histogram_quantile(0.99, sum by (le) (rate(fairlead_slurm_bridge_read_seconds_bucket[$__rate_interval])))",
                    "read",
                ),
                Query(
                    "histogram_quantile(0.99, sum by (le) (rate(fairlead_slurm_bridge_write_seconds_bucket[15m])))",
                    "write levels",
                ),
            ],
            "s",
        ),
        Panel(
            "Slurm: levels and jobs asked for",
            "By what became of them. `refused` that goes on is a right that is missing, or a priority that Slurm's own factors "
            "leave no room for: `fairlead slurm check` says which. `gone` is a job that started or left meanwhile.",
            [
                Query(
                    "sum by (outcome) (rate(fairlead_slurm_bridge_level_writes_total[$__rate_interval]))",
                    "level {{outcome}}",
                ),
                Query(
                    "sum by (outcome) (rate(fairlead_slurm_bridge_creations_total[$__rate_interval])) or vector(0)",
                    "job {{outcome}}",
                ),
            ],
            "ops",
        ),
        Panel(
            "Slurm: what failed",
            "Readings that failed, a second, and lines of squeue that could not be read. Readings: slurmctld is away, or the token has "
            "ended. Lines: a Slurm that prints otherwise than those that were tested; the bridge's log has them.",
            [
                Query(
                    "sum(rate(fairlead_slurm_bridge_read_failures_total[$__rate_interval]))",
                    "readings",
                ),
                Query("sum(fairlead_slurm_bridge_unreadable)", "lines of the last reading", unit="short"),
            ],
            "ops",
        ),
        Panel(
            "Slurm: hooks, by answer",
            "Jobs that run as pods ask at each start and end. `broken` or `gone` that goes on: slurmd gives up before it is "
            "answered; raise its PrologEpilogTimeout, and see how long an answer takes.",
            [
                Query(
                    "sum by (hook, answer) (rate(fairlead_slurm_bridge_hooks_total[$__rate_interval])) or vector(0)",
                    "{{hook}}: {{answer}}",
                )
            ],
            "ops",
        ),
        Panel(
            "Gang fit: answers",
            "Workloads that the check let through (`Ready`), or gave their quota back (`Retry`), a second. Many of the second "
            "and few of the first: gangs that no set of nodes has room for at once; `fairlead explain` one.",
            [Query("sum by (state) (rate(fairlead_checker_answers_total[$__rate_interval]))", "{{state}}")],
            "ops",
        ),
        Panel(
            "Gang fit: kept waiting, and let through",
            "Workloads that do not fit now, and those whose pods are not on their nodes yet. The second stays high where the "
            "scheduler does not follow: look at the pods' Events.",
            [
                Query("sum(fairlead_checker_awaiting)", "do not fit now"),
                Query("sum(fairlead_checker_held)", "let through, not on nodes yet"),
            ],
        ),
        Panel(
            "Gang fit: time to place a gang, p99",
            "Milliseconds for thousands of nodes. Tenths of a second: gangs of many shapes; fewer different pods in one Job "
            "are placed faster.",
            [
                Query(
                    "histogram_quantile(0.99, sum by (le) (rate(fairlead_checker_look_seconds_bucket[15m])))",
                    "place a gang",
                )
            ],
            "s",
        ),
    ],
    by_pool=False,
)
