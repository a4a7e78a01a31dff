"""`fairlead queue`, `tenants`, `explain`, `top`: who waits, who has what, and why."""

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from fairlead_cli.options import OfTenant, Output, Reach, Underway


def queue(
    *,
    pool: str | None = None,
    tenant: OfTenant = None,
    limit: Annotated[int, Parameter(validator=Number(gte=0))] = 50,
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Who waits, in order, and why there.

    Args:
        pool: Only this pool.
        tenant: Only this tenant's jobs.
        limit: At most so many jobs a pool; 0 for as many as an answer holds (2,000, of one tenant 200). Above 50, and
            with 0, also up to 500 jobs without a position; else up to three.
        output: A table; wide: with every column; json, yaml: see docs/output.md; name: names alone.
    """
    from fairlead_cli.client.asking import show_queue

    return show_queue(reach.nats, pool=pool, tenant=tenant, limit=limit, form=output)


def tenants(
    *, pool: str | None = None, tenant: OfTenant = None, output: Output = "table", reach: Reach = Reach()
) -> Underway:
    """Who has what, of what they may have.

    Args:
        pool: Only this pool.
        tenant: Only this tenant.
        output: A table; wide: with every column; json, yaml: see docs/output.md; name: names alone.
    """
    from fairlead_cli.client.asking import show_tenants

    return show_tenants(reach.nats, pool=pool, tenant=tenant, form=output)


def explain(
    job: str,
    /,
    *,
    tenant: OfTenant = None,
    verbose: Annotated[bool, Parameter(name=["--verbose", "-v"], negative="")] = False,
    output: Output = "table",
    reach: Reach = Reach(),
) -> Underway:
    """Why a job stands where it stands, and what would move it.

    Args:
        job: Its name as `fairlead queue` shows it, alone or as `<scope>/<name>`; or its uid, submission id or Workload.
        tenant: Tenant of the job, where several have one of that name.
        verbose: Also its start tag, key and level, and every reason.
        output: Words; json, yaml: see docs/output.md; name: names alone.
    """
    from fairlead_cli.client.asking import show_explanation

    return show_explanation(reach.nats, job, tenant=tenant, form=output, verbose=verbose)


def top(
    *,
    pool: str | None = None,
    every: Annotated[float, Parameter(validator=Number(gte=0.1, lte=3600))] = 1.0,
    reach: Reach = Reach(),
) -> Underway:
    """Live: tenants, the next jobs, throughput. `q` or Ctrl-C ends it.

    Args:
        pool: Only this pool.
        every: Seconds between two looks.
    """
    from fairlead_cli.client.watching import watch

    return watch(reach.nats, pool=pool, every=every)
