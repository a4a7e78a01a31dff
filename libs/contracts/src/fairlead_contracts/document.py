"""The policy document: one YAML or JSON file that says who may have what.

Stored in the `policy` bucket under `document`; the key's revision is the policy's revision. Reading checks everything
at once: an operator sees every problem of a file, not one a run.
"""

import re
from typing import Literal, get_type_hints

import msgspec

from fairlead_contracts.errors import DocumentError, FieldError

POLICY_VERSION = 1
SHARDS = 16
"""Shards of a pool unless the policy says otherwise; independent of the number of scorers."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Parts of our own configuration: a misspelled key is an error, not a silent default."""


class Aging(Strict, frozen=True, kw_only=True):
    """Aging as an exchange rate: waiting one hour is worth `share_per_hour` of dominant share, up to `cap_hours`."""

    share_per_hour: float = 0.06
    cap_hours: float | None = 336.0


class Match(Strict, frozen=True, kw_only=True):
    """Which jobs are a tenant's: every list that is given must hold the job's value."""

    scopes: list[str] | None = None
    """Namespaces or accounts."""
    queues: list[str] | None = None
    clusters: list[str] | None = None
    labels: dict[str, str] = {}


class Tenant(Strict, frozen=True, kw_only=True):
    """One tenant: a leaf of the tree, or the parent of others."""

    name: str
    weight: float = 1.0
    parent: str | None = None
    pool: str | None = None
    """The only pool that it counts in; None for all. Inherited from the parent."""
    match: Match | None = None
    """None matches the scope that has the tenant's name."""


class Pool(Strict, frozen=True, kw_only=True):
    """A fairness domain by its own name, of one or several clusters' pools."""

    name: str
    members: list[str]
    """`<cluster>/<pool>`, as the clusters state them. A stated pool that no policy pool names is its own pool, under
    that same `<cluster>/<pool>`."""


class Grant(Strict, frozen=True, kw_only=True):
    """Classes that a tenant's jobs may have beside the last one, which everybody may."""

    tenant: str
    classes: list[str]
    job: str | None = None
    """Only this job, by id or uid."""
    by: str = ""
    why: str = ""


class PolicyDocument(Strict, frozen=True, kw_only=True):
    """Who may have what: tenants and weights, classes and grants, aging, and how levels are written."""

    version: Literal[1] = 1
    classes: list[str] = msgspec.field(default_factory=lambda: ["urgent", "approved", "normal"])
    """First goes first; the last is everybody's default."""
    aging: Aging = msgspec.field(default_factory=Aging)
    resource_weights: dict[str, float] = {}
    """Default 1; 0 leaves a resource out of the dominant share."""
    window: int = 100
    """How many jobs of each queue's front are labelled."""
    shards: int = SHARDS
    preemption: Literal["never", "protect", "accept"] = "never"
    """Where a level may be written although the frontend could preempt by it."""
    unlisted_weight: float | None = None
    """The weight of a tenant that the document does not name; None refuses its submissions, and jobs of it that
    enter a queue by another way stand last."""
    pools: list[Pool] = []
    tenants: list[Tenant] = []
    grants: list[Grant] = []


DOCUMENT_JSON = msgspec.json.Encoder()
_NAME = re.compile(r"[^\s\x00-\x1f\x7f]{1,253}")
_TYPES = get_type_hints(PolicyDocument)


def encode_document(document: PolicyDocument) -> bytes:
    """The document as it is stored: JSON."""
    return DOCUMENT_JSON.encode(document)


def decode_document(payload: bytes) -> PolicyDocument:
    """The document as stored or as sent.

    Raises:
        DocumentError: with every problem found.
    """
    try:
        found = msgspec.json.decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise DocumentError([FieldError("document", "", f"is not valid JSON: {error}")]) from error
    return read_document(found)


def read_document(found: object) -> PolicyDocument:
    """The document in plain values, as a YAML or JSON parser gives them.

    Raises:
        DocumentError: with every problem found.
    """
    if not isinstance(found, dict):
        raise DocumentError([FieldError("document", found, "must be a mapping of keys and values")])
    problems: list[FieldError] = []
    values: dict[str, object] = {}
    for name in found:
        if name not in _TYPES:
            problems.append(
                FieldError(
                    str(name), found[name], f"is not a key of a policy; keys are {', '.join(sorted(_TYPES))}"
                )
            )
            continue
        try:
            values[name] = msgspec.convert(found[name], _TYPES[name])
        except msgspec.ValidationError as error:
            problems.append(FieldError(name, found[name], str(error)))
    # What could be read is checked for sense even where other keys could not: all problems at once.
    document = PolicyDocument(**values)  # type: ignore[arg-type] # each value was converted to its key's type above
    problems += check_document(document)
    if problems:
        raise DocumentError(problems)
    return document


def check_document(document: PolicyDocument) -> list[FieldError]:
    """What the types alone do not tell: every problem of the document's sense."""
    return [
        *_check_numbers(document),
        *_check_classes(document),
        *_check_tenants(document),
        *_check_pools(document),
    ]


def _check_numbers(document: PolicyDocument) -> list[FieldError]:
    problems = []
    rate, cap = document.aging.share_per_hour, document.aging.cap_hours
    if not 0 <= rate < 1e9:
        problems.append(FieldError("aging.share_per_hour", rate, "must be a number from 0"))
    if cap is not None and not 0 < cap < 1e7:
        problems.append(FieldError("aging.cap_hours", cap, "must be above 0; leave it null for no cap"))
    for resource, weight in document.resource_weights.items():
        if not 0 <= weight < 1e9:
            problems.append(FieldError(f"resource_weights.{resource}", weight, "must be a number from 0"))
    if not 1 <= document.window <= 10_000:
        problems.append(FieldError("window", document.window, "must lie between 1 and 10000"))
    if not 1 <= document.shards <= 256:
        problems.append(FieldError("shards", document.shards, "must lie between 1 and 256"))
    if document.unlisted_weight is not None and not 0 <= document.unlisted_weight < 1e9:
        problems.append(
            FieldError("unlisted_weight", document.unlisted_weight, "must be a number from 0, or null")
        )
    return problems


def _check_classes(document: PolicyDocument) -> list[FieldError]:
    problems = []
    if not document.classes or len(set(document.classes)) != len(document.classes):
        problems.append(FieldError("classes", document.classes, "must name at least one class, each once"))
    tenants = {tenant.name for tenant in document.tenants}
    for number, grant in enumerate(document.grants):
        unknown = [name for name in grant.classes if name not in document.classes]
        if unknown:
            problems.append(
                FieldError(f"grants[{number}].classes", unknown, "names a class that is not in classes")
            )
        if grant.tenant not in tenants:
            problems.append(
                FieldError(f"grants[{number}].tenant", grant.tenant, "names a tenant that is not in tenants")
            )
    return problems


def _check_tenants(document: PolicyDocument) -> list[FieldError]:
    problems = []
    seen: set[str] = set()
    pools = {pool.name for pool in document.pools}
    for number, tenant in enumerate(document.tenants):
        field = f"tenants[{number}]"
        if not _NAME.fullmatch(tenant.name):
            problems.append(
                FieldError(f"{field}.name", tenant.name, "must be 1 to 253 characters without blanks")
            )
        if tenant.name in seen:
            problems.append(FieldError(f"{field}.name", tenant.name, "is named twice"))
        seen.add(tenant.name)
        if not 0 <= tenant.weight < 1e9:
            problems.append(FieldError(f"{field}.weight", tenant.weight, "must be a number from 0"))
        if tenant.parent is not None:
            problems.append(
                FieldError(
                    f"{field}.parent", tenant.parent, "a tree of tenants is not scored yet; leave parent out"
                )
            )
        if tenant.pool is not None and tenant.pool not in pools:
            problems.append(FieldError(f"{field}.pool", tenant.pool, "names a pool that is not in pools"))
    return problems


def _check_pools(document: PolicyDocument) -> list[FieldError]:
    problems = []
    names: set[str] = set()
    members: set[str] = set()
    for number, pool in enumerate(document.pools):
        field = f"pools[{number}]"
        if not _NAME.fullmatch(pool.name) or pool.name in names:
            problems.append(
                FieldError(
                    f"{field}.name", pool.name, "must be 1 to 253 characters without blanks, each name once"
                )
            )
        names.add(pool.name)
        for member in pool.members:
            if "/" not in member or member in members:
                problems.append(
                    FieldError(f"{field}.members", member, "must be <cluster>/<pool>, in one pool alone")
                )
            members.add(member)
    return problems
