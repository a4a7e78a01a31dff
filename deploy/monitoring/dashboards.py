"""Writes the Grafana dashboards beside it: `make dashboards`. What a panel asks, shows and advises stands here once.

No package is needed. The JSON is committed, so that who installs runs nothing; a test says where the two differ.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from frontends import FRONTENDS
from panels import Dashboard, Panel, Query

HERE = Path(__file__).parent
FOLDER = HERE / "grafana" / "dashboards"
RULES = (HERE / "prometheus" / "rules" / "fairlead.yaml", HERE / "alerts" / "fairlead.yaml")
OPERATOR_RULES = HERE / "prometheusrule.yaml"
SCHEMA = 41
"""Version of the schema, that of Grafana 12; older ones from 10 on read it as well."""
WIDTH, HEIGHT = 12, 8
_METRICS = {"type": "prometheus", "uid": "${datasource}"}
_TRACES = {"type": "tempo", "uid": "${traces}"}


_POOL = 'pool=~"$pool"'

FAIRNESS = Dashboard(
    "fairlead-fairness",
    "Fairlead / Fairness",
    "Does each tenant get its part, and does anybody starve?",
    [
        Panel(
            "Share against entitlement",
            "100 % is exactly its part. Tenants that wait should come near it; one that stays below while others are above is "
            "held back: see what blocks the heads under Queues, then `fairlead explain` one of its jobs.",
            [Query(f'fairlead:tenant_normalised_share:ratio{{{_POOL},tenant=~"$tenant"}}', "{{tenant}}")],
            "percentunit",
        ),
        Panel(
            "Jain's index of the tenants that wait",
            "1 is exactly fair; under 0.9 for an hour, look for a tenant whose jobs are too large for what is free, or a "
            "pool that is withheld.",
            [Query(f"fairlead:jain:ratio{{{_POOL}}}", "{{pool}}")],
            most=1,
        ),
        Panel(
            "Dominant share, by resource",
            "Which resource makes a tenant large. Where it is one that nobody else wants, give that resource a smaller "
            "weight in the policy.",
            [
                Query(
                    f'max by (tenant, resource) (fairlead_scorer_tenant_dominant_ratio{{{_POOL},tenant=~"$tenant"}})',
                    "{{tenant}}: {{resource}}",
                )
            ],
            "percentunit",
        ),
        Panel(
            "Entitlement",
            "The part that the weights give each tenant. If it moves, the policy or the tenants that it lists have changed.",
            [
                Query(
                    f'max by (tenant) (fairlead_scorer_tenant_entitlement_ratio{{{_POOL},tenant=~"$tenant"}})',
                    "{{tenant}}",
                )
            ],
            "percentunit",
        ),
        Panel(
            "Longest wait among the heads",
            "Of the jobs that could be next. A line that rises with the clock is a job that does not start: explain it, and "
            "look whether its queue's quota can hold it at all.",
            [
                Query(
                    f'max by (tenant) (fairlead_scorer_tenant_longest_wait_seconds{{{_POOL},tenant=~"$tenant"}})',
                    "{{tenant}}",
                )
            ],
            "s",
        ),
        Panel(
            "Waiting beyond the aging bound",
            "Above 0 no later job can pass it any more by aging: it waits for room alone. With its tenant below its part for "
            "an hour this is the alert FairleadJobPastItsBound; docs/runbooks has what to do.",
            [
                Query(
                    f'max by (tenant) (fairlead_scorer_tenant_past_bound_seconds{{{_POOL},tenant=~"$tenant"}})',
                    "{{tenant}}",
                )
            ],
            "s",
        ),
        Panel(
            "Envy",
            "How far a waiting tenant is behind the one that has most of its part. It falls as jobs end: if it does not, "
            "long jobs of that one hold the pool; only shorter jobs, or fewer at once, change that.",
            [Query(f'fairlead:tenant_envy:ratio{{{_POOL},tenant=~"$tenant"}}', "{{tenant}}")],
            "percentunit",
        ),
        Panel(
            "Tenants that starve",
            "Tenants that wait with less than half of their part. More than none for an hour: look at idle resources, and at "
            "jobs that cannot fit.",
            [Query(f"fairlead:tenants_starved:count{{{_POOL}}}", "{{pool}}")],
        ),
    ],
)

QUEUES = Dashboard(
    "fairlead-queues",
    "Fairlead / Queues",
    "Who waits, for how long, and for what?",
    [
        Panel(
            "Queued, by class",
            "If urgent jobs pile up, they are more than the pool can hold: give the class a maximum share, or grant it less.",
            [
                Query(
                    f"sum by (class, phase) (fairlead_admitter_queued_jobs{{{_POOL}}})",
                    "{{class}}, {{phase}}",
                )
            ],
        ),
        Panel(
            "Waiting, by tenant",
            "A tenant whose line only rises submits more than its part can run; that is its own matter, and harms no other.",
            [
                Query(
                    f'sum by (tenant) (fairlead_scorer_tenant_waiting_jobs{{{_POOL},tenant=~"$tenant"}})',
                    "{{tenant}}",
                )
            ],
        ),
        Panel(
            "Running, by tenant",
            "If this falls while others wait, room is not used: see admissions out of order and idle resources.",
            [
                Query(
                    f'sum by (tenant) (fairlead_scorer_tenant_running_jobs{{{_POOL},tenant=~"$tenant"}})',
                    "{{tenant}}",
                )
            ],
        ),
        Panel(
            "Wait until the start",
            "p50, p90 and p99 of the jobs that started within the last hour. Points are single jobs with a trace: click one to "
            "see where its time went.",
            [
                Query(f"fairlead:wait_seconds:p{part}{{{_POOL}}}", f"p{part} {{{{class}}}}", exemplars=False)
                for part in (50, 90, 99)
            ]
            + [
                Query(
                    f"histogram_quantile(0.99, sum by (le) (rate(fairlead_admitter_wait_seconds_bucket{{{_POOL}}}[$__rate_interval])))",
                    "p99 now",
                    exemplars=True,
                )
            ],
            "s",
        ),
        Panel(
            "Positions moved",
            "Jobs among the heads that were overtaken, a second. Bursts after a policy change or at arrivals are right; a steady "
            "high rate without arrivals is a rate of aging that is too fast.",
            [
                Query(
                    f"sum by (pool) (rate(fairlead_scorer_positions_moved_total{{{_POOL}}}[$__rate_interval]))",
                    "{{pool}}",
                )
            ],
            "ops",
        ),
        Panel(
            "What blocks the heads",
            "The first job of each queue, by what keeps it there: its share alone, a resource that is used up, a weight of 0, "
            "or something that the pool does not have. Anything but `share` needs a look at that job.",
            [Query(f"sum by (why) (fairlead_scorer_heads{{{_POOL}}})", "{{why}}")],
        ),
        Panel(
            "Fit, and held back by something else",
            "Jobs for which there is quota and that do not start: topology, admission checks, or a frontend that is slow. "
            "`fairlead explain` says which.",
            [Query(f"sum by (pool) (fairlead_admitter_jobs_hindered{{{_POOL}}})", "{{pool}}")],
        ),
        Panel(
            "Admissions out of order",
            "Starts in room that a waiting job before them should have had, a part of all that could be judged. Over 1 %: see what "
            "enforcement `fairlead queue` states, and whether somebody else writes levels.",
            [
                Query(
                    f"(sum by (pool) (rate(fairlead_admitter_admissions_out_of_order_total{{{_POOL}}}[15m]))"
                    f" or 0 * sum by (pool) (rate(fairlead_admitter_admissions_judged_total{{{_POOL}}}[15m])))"
                    f" / sum by (pool) (rate(fairlead_admitter_admissions_judged_total{{{_POOL}}}[15m]))",
                    "{{pool}}",
                )
            ],
            "percentunit",
        ),
    ],
)

PIPELINE = Dashboard(
    "fairlead-pipeline",
    "Fairlead / Pipeline",
    "Does what happens become levels quickly, and does each part do its work?",
    [
        Panel(
            "Event to level",
            "From a change that a decision knew to its levels. Points lead to the trace of the scoring pass. Over a second: "
            "compare the stages beside this.",
            [
                Query("fairlead:event_to_level_seconds:p50", "p50"),
                Query(
                    "histogram_quantile(0.99, sum by (le) (rate(fairlead_admitter_event_to_level_seconds_bucket[$__rate_interval])))",
                    "p99",
                    exemplars=True,
                ),
            ],
            "s",
        ),
        Panel(
            "Stages, p99",
            "Scoring a shard and planning a pool. Scoring that grows with the queue wants more scorers; planning that "
            "grows wants fewer queues a pool.",
            [
                Query(
                    "histogram_quantile(0.99, sum by (le) (rate(fairlead_scorer_rescore_seconds_bucket[$__rate_interval])))",
                    "score a shard",
                ),
                Query(
                    "histogram_quantile(0.99, sum by (le) (rate(fairlead_admitter_pass_seconds_bucket[$__rate_interval])))",
                    "plan a pool",
                ),
            ],
            "s",
        ),
        Panel(
            "Backlog",
            "Submissions that nobody has read, those that are being taken in, and shards that wait to be decided. What grows "
            "for minutes has nobody who works on it: see leaders and owners.",
            [
                Query("max(fairlead_admitter_intake_pending_messages)", "submissions not read"),
                Query("max(fairlead_admitter_intake_unacked_messages)", "submissions in hand"),
                Query("sum(fairlead_scorer_dirty_shards)", "shards to decide"),
            ],
        ),
        Panel(
            "Leaders and owners",
            "One admitter leads a cluster and each shard has one owner. Shards without an owner for a minute are an alert; "
            "many claims and losses mean scorers that come and go, or are too busy to renew their leases.",
            [
                Query("sum(fairlead_admitter_leading)", "admitters that lead"),
                Query("sum(fairlead:pool_shards_unowned:count)", "shards without an owner"),
                Query("sum(increase(fairlead_scorer_claims_total[5m]))", "shards taken over in 5 min"),
            ],
        ),
        Panel(
            "Writes made and saved",
            "Levels written a second, by kind, and how many of the window could stay as they were. Many writes and few that "
            "stay: the order moves more than it should.",
            [
                Query(
                    f"sum by (kind) (rate(fairlead_admitter_levels_written_total{{{_POOL}}}[$__rate_interval]))",
                    "{{kind}}",
                ),
                Query(
                    f"sum(fairlead_admitter_levels_kept{{{_POOL}}})", "jobs whose level stays", unit="short"
                ),
                Query(f"sum(fairlead_admitter_window{{{_POOL}}})", "jobs of the window", unit="short"),
            ],
            "ops",
        ),
        Panel(
            "Writes for each admission",
            "About 1.5 on a quiet day. Above 3 for half an hour is the alert FairleadWritesOverBudget: look for another writer, "
            "or for jobs that change all the time.",
            [Query("fairlead:writes_per_admission:ratio", "writes")],
        ),
        Panel(
            "What failed",
            "Writes that were not confirmed, jobs that could not be made, decisions that could not be published. Each is tried "
            "again; a steady line is a right that is missing or an API server in trouble: the log of that service names it.",
            [
                Query("sum(rate(fairlead_admitter_writes_failed_total[$__rate_interval]))", "levels"),
                Query("sum(rate(fairlead_admitter_creations_failed_total[$__rate_interval]))", "jobs"),
                Query(
                    "sum(rate(fairlead_scorer_publish_failures_total[$__rate_interval])) or vector(0)",
                    "decisions",
                ),
                Query("sum(rate(fairlead_kube_events_total[$__rate_interval])) or vector(0)", "Kubernetes"),
            ],
            "ops",
        ),
        Panel(
            "NATS",
            "What the clients met, a second, and how full the fullest stream is. From 80 % on submissions are refused: raise the "
            "stream's limits, or find who floods it.",
            [
                Query("sum by (what) (rate(fairlead_bus_events_total[$__rate_interval]))", "{{what}}"),
                Query("max(fairlead_admitter_nats_used_ratio)", "fullest stream", unit="percentunit"),
            ],
            "ops",
        ),
        Panel(
            "Watches",
            "For how long nothing could be heard of a kind. Over a minute is the alert FairleadWatchBroken: the API server, or "
            "a right that was taken away.",
            [Query("max by (kind) (fairlead_watcher_age_seconds)", "{{kind}}")],
            "s",
        ),
        Panel(
            "Spans",
            "What became of spans; empty where no collector is named (`otel_endpoint`). Dropped ones mean a collector that is "
            "away or slow: nothing waits for it, and traces have holes meanwhile.",
            [Query("sum by (outcome) (rate(fairlead_trace_spans_total[$__rate_interval]))", "{{outcome}}")],
            "ops",
        ),
    ],
)

BOARDS = (FAIRNESS, QUEUES, PIPELINE, FRONTENDS)


def queries(board: Dashboard) -> Iterable[Query]:
    """Queries of a dashboard to Prometheus."""
    return (query for panel in board.panels for query in panel.queries)


def rendered(board: Dashboard) -> dict[str, object]:
    """The dashboard as Grafana reads it."""
    panels = [_panel(number, panel) for number, panel in enumerate(board.panels)]
    return _page(board.uid, board.title, board.about, panels, _variables(by_pool=board.by_pool))


def job_board() -> dict[str, object]:
    """The board of a job's story: Grafana shows the trace whose id `fairlead explain` prints, or finds it by the job's name."""
    found: dict[str, object] = {
        "id": 1,
        "type": "table",
        "title": "Traces of jobs of this name",
        "description": "Only kept traces are here (a part of all, see otel_sample_ratio). Nothing found: `fairlead explain` "
        "says whether the job has a trace. Click one to read it below.",
        "datasource": _TRACES,
        "gridPos": {"h": HEIGHT, "w": 2 * WIDTH, "x": 0, "y": 0},
        "fieldConfig": {"defaults": {"unit": "short"}, "overrides": []},
        "options": {},
        "targets": [
            {
                "refId": "A",
                "datasource": _TRACES,
                "queryType": "traceql",
                "query": '{resource.service.namespace="fairlead" && span.fairlead.job="$job"}',
                "limit": 20,
                "tableType": "traces",
            }
        ],
    }
    story: dict[str, object] = {
        "id": 2,
        "type": "traces",
        "title": "The job's story",
        "description": "submit, observed, scored, level, admitted, started, ended, each as it was seen to end. A long gap before "
        "`admitted` is waiting for room or for its turn: `scored` says in which shard and with which tag. A stage that "
        "is missing was not reached, or its service could not reach the collector.",
        "datasource": _TRACES,
        "gridPos": {"h": 2 * HEIGHT, "w": 2 * WIDTH, "x": 0, "y": HEIGHT},
        "fieldConfig": {"defaults": {"unit": "short"}, "overrides": []},
        "options": {},
        "targets": [{"refId": "A", "datasource": _TRACES, "queryType": "traceql", "query": "$trace"}],
    }
    boxes: list[dict[str, object]] = [
        {"name": name, "type": "textbox", "label": label, "query": "", "current": {"text": "", "value": ""}}
        for name, label in (("job", "Job"), ("trace", "Trace id"))
    ]
    about = "One job from submit to end, by its trace."
    traces: dict[str, object] = {
        "name": "traces",
        "type": "datasource",
        "label": "Traces",
        "query": "tempo",
        "current": {},
    }
    return _page("fairlead-job", "Fairlead / Job", about, [found, story], [traces, *boxes])


def _panel(number: int, panel: Panel) -> dict[str, object]:
    place = {"h": HEIGHT, "w": WIDTH, "x": WIDTH * (number % 2), "y": HEIGHT * (number // 2)}
    drawn = {"lineWidth": 1, "fillOpacity": 10, "showPoints": "never", "spanNulls": False}
    defaults: dict[str, object] = {"unit": panel.unit, "min": 0, "custom": drawn}
    if panel.most is not None:
        defaults["max"] = panel.most
    return {
        "id": number + 1,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.advice,
        "datasource": _METRICS,
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": list(_other_units(panel))},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        "targets": [
            {
                "refId": _letter(place),
                "datasource": _METRICS,
                "expr": query.expr,
                "legendFormat": query.legend,
                "exemplar": query.exemplars,
                "range": True,
            }
            for place, query in enumerate(panel.queries)
        ],
    }


def _other_units(panel: Panel) -> Iterator[dict[str, object]]:
    """The queries whose unit is not the panel's."""
    for place, query in enumerate(panel.queries):
        if query.unit is not None:
            yield {
                "matcher": {"id": "byFrameRefID", "options": _letter(place)},
                "properties": [
                    {"id": "unit", "value": query.unit},
                    {"id": "custom.axisPlacement", "value": "right"},
                ],
            }


def _letter(place: int) -> str:
    return chr(ord("A") + place)


def _variables(*, by_pool: bool) -> list[dict[str, object]]:
    source: dict[str, object] = {
        "name": "datasource",
        "type": "datasource",
        "label": "Metrics",
        "query": "prometheus",
        "current": {},
    }
    if not by_pool:
        return [source]
    asked = (
        ("pool", "Pool", "label_values(fairlead_scorer_pool_shards, pool)"),
        ("tenant", "Tenant", 'label_values(fairlead_scorer_tenant_share_ratio{pool=~"$pool"}, tenant)'),
    )
    return [source, *(_variable(*one) for one in asked)]


def _variable(name: str, label: str, query: str) -> dict[str, object]:
    return {
        "name": name,
        "type": "query",
        "label": label,
        "datasource": _METRICS,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "sort": 1,
    }


def _page(
    uid: str, title: str, about: str, panels: list[dict[str, object]], variables: list[dict[str, object]]
) -> dict[str, object]:
    return {
        "uid": uid,
        "title": title,
        "description": about,
        "tags": ["fairlead"],
        "schemaVersion": SCHEMA,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "timezone": "",
        "links": [
            {
                "type": "dashboards",
                "title": "Fairlead",
                "tags": ["fairlead"],
                "asDropdown": False,
                "includeVars": True,
                "keepTime": True,
            }
        ],
        "annotations": {"list": []},
        "templating": {"list": variables},
        "panels": panels,
    }


def files() -> dict[str, str]:
    """Pages that belong into the folder, by file name."""
    pages = [*map(rendered, BOARDS), job_board()]
    return {f"{page['uid']}.json": json.dumps(page, indent=1) + "\n" for page in pages}


def operator_rules() -> str:
    """The rules and alerts in the form that the Prometheus operator takes."""
    lines = [line for path in RULES for line in path.read_text().partition("groups:\n")[2].splitlines()]
    head = [
        "# Made by `make dashboards` from prometheus/rules and alerts: change these.",
        "apiVersion: monitoring.coreos.com/v1",
        "kind: PrometheusRule",
        "metadata:",
        "  name: fairlead",
        "  namespace: fairlead",
        "  labels: {app.kubernetes.io/part-of: fairlead}",
        "spec:",
        "  groups:",
    ]
    return "\n".join([*head, *(f"  {line}" if line else "" for line in lines)]) + "\n"


def main() -> int:
    """Write the dashboards and the rules."""
    OPERATOR_RULES.write_text(operator_rules())
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
