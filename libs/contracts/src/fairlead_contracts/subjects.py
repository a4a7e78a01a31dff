"""Every subject and key, built in one place. Names are encoded here and nowhere else."""

import hashlib
from typing import Literal, NamedTuple

from fairlead_contracts.base.errors import MalformedError
from fairlead_contracts.base.tokens import MAX_TOKEN, NO_NAME, decode_token, encode_key, encode_token

ROOT = "fairlead.v1"
ANY_CLUSTER = "any"
MAX_REST = 3 * MAX_TOKEN
"""Bytes of the part of a subject behind the root: three names fit."""

type StateKind = Literal["node", "pool", "queue", "class", "tenant", "job", "mark"]
type QuestionKind = Literal["answer", "explain", "queue", "tenants"]
type FrontendVerb = Literal["create", "levels", "delete"]


def state(cluster: str, kind: StateKind, name: str, *, scope: str | None = None) -> str:
    """The subject of one object of a cluster's state."""
    place = NO_NAME if scope is None else encode_token(scope)
    return f"{ROOT}.state.{encode_token(cluster)}.{kind}.{place}.{encode_token(name)}"


def mark(cluster: str) -> str:
    """The subject of a cluster's sync mark."""
    return state(cluster, "mark", "sync")


def pools_filter() -> str:
    """The filter of the pools that all clusters state."""
    return f"{ROOT}.state.*.pool.*.*"


def state_filter(cluster: str | None = None) -> str:
    """The filter of all state of a cluster, or of all clusters."""
    return f"{ROOT}.state.>" if cluster is None else f"{ROOT}.state.{encode_token(cluster)}.>"


def decision(pool: str, shard: int) -> str:
    """The subject of one shard's decision."""
    return f"{ROOT}.decision.{encode_token(pool)}.{shard}"


def decision_filter() -> str:
    """The filter of all decisions of all pools."""
    return f"{ROOT}.decision.>"


def submit(cluster: str, tenant: str) -> str:
    """The subject to publish a job of a tenant on, for a cluster or for `any`."""
    return f"{ROOT}.submit.{encode_token(cluster)}.{encode_token(tenant)}"


def submit_filter(cluster: str) -> str:
    """The filter of everything submitted for a cluster.

    It takes more tokens than one behind the cluster: a tenant whose dots were not encoded is heard, too.
    """
    return f"{ROOT}.submit.{encode_token(cluster)}.>"


def tenant_of_submit(subject: str) -> str:
    """The tenant that a submit subject names; dots that were not encoded stay part of it.

    Raises:
        MalformedError: it is not a submit subject.
    """
    _, marker, rest = subject.partition(f"{ROOT}.submit.")
    _, dot, tenant = rest.partition(".")
    if not marker or not dot or not tenant:
        raise MalformedError(f"{subject!r} is not a submit subject")
    return decode_token(tenant)


def line_of(subject: str) -> str:
    """The line that a submission or an event stands in: that of the tenant that its subject names, as it is written there."""
    _, _, kind, first, *rest = subject.split(".", 4)
    return rest[0] if kind == "submit" and rest else first


def answer(tenant: str, submission: str) -> str:
    """The subject on which the sender of a submission hears of it."""
    return f"{ROOT}.answer.{encode_token(tenant)}.{encode_token(submission)}"


def answer_filter(tenant: str | None = None) -> str:
    """The filter of all answers to a tenant, or to all."""
    return f"{ROOT}.answer.>" if tenant is None else f"{ROOT}.answer.{encode_token(tenant)}.>"


def event(tenant: str, cluster: str, job: str) -> str:
    """The subject of one job's events."""
    return f"{ROOT}.event.{encode_token(tenant)}.{encode_token(cluster)}.{encode_token(job)}"


def event_filter(cluster: str | None = None) -> str:
    """The filter of all events of a cluster, or of all clusters."""
    return f"{ROOT}.event.>" if cluster is None else f"{ROOT}.event.*.{encode_token(cluster)}.>"


def dead(subject: str) -> str:
    """The subject of a message that failed its last delivery: `fairlead.v1.dead.<the rest of its subject>`.

    A subject too long to be prolonged safely is named by its digest; the dead letter's body has it in full.
    """
    rest = subject.removeprefix(ROOT + ".")
    if len(rest) > MAX_REST:
        rest = f"long.{hashlib.blake2b(subject.encode(), digest_size=16).hexdigest()}"
    return f"{ROOT}.dead.{rest}"


def ask(question: QuestionKind, tenant: str | None = None) -> str:
    """The subject to ask a question on, about one tenant or about all."""
    return f"{ROOT}.ask.{question}.{NO_NAME if tenant is None else encode_token(tenant)}"


def ask_filter(question: QuestionKind) -> str:
    """The filter on which a question is answered."""
    return f"{ROOT}.ask.{question}.*"


def shard_question(pool: str, shard: int, question: QuestionKind) -> str:
    """The subject on which the owner of a shard answers another scorer."""
    return f"{ROOT}.shard.{encode_token(pool)}.{shard}.{question}"


def shard_questions(pool: str, shard: int) -> str:
    """The filter on which the owner of a shard listens for all questions."""
    return f"{ROOT}.shard.{encode_token(pool)}.{shard}.*"


def frontend(cluster: str, verb: FrontendVerb) -> str:
    """The subject of a verb for the frontend of a cluster that lives behind the bus."""
    return f"{ROOT}.frontend.{encode_token(cluster)}.{verb}"


def frontend_verbs(cluster: str) -> str:
    """The filter on which such a frontend listens for all verbs."""
    return f"{ROOT}.frontend.{encode_token(cluster)}.*"


_STATE_TOKENS = 4


class StateName(NamedTuple):
    """The names in a state subject; scope is None where the kind has none."""

    cluster: str
    kind: str
    scope: str | None
    name: str


def parse_state(subject: str) -> StateName:
    """The object that a state subject names.

    Raises:
        MalformedError: it is not a subject of one object of the state.
    """
    tokens = subject.removeprefix(f"{ROOT}.state.").split(".")
    if len(tokens) != _STATE_TOKENS or not subject.startswith(f"{ROOT}.state."):
        raise MalformedError(f"{subject!r} is not the subject of an object of the state")
    cluster, kind, scope, name = tokens
    return StateName(
        decode_token(cluster), kind, None if scope == NO_NAME else decode_token(scope), decode_token(name)
    )


def member_key(role: str, replica: str) -> str:
    """Key of a replica's lease in the `members` bucket."""
    return f"member.{role}.{encode_key(replica)}"


def leader_key(role: str, cluster: str) -> str:
    """Key of the leader's lease of a role for a cluster in the `members` bucket."""
    return f"leader.{role}.{encode_key(cluster)}"


def control_key(pool: str | None = None) -> str:
    """Key of an operator's word in the `policy` bucket, on one pool or on all."""
    return f"control.{NO_NAME if pool is None else encode_key(pool)}"


def leave_key(cluster: str) -> str:
    """Key of an operator's leave to steer a cluster in the `policy` bucket."""
    return f"clearance.{encode_key(cluster)}"


def revocation_key(cluster: str) -> str:
    """Key of the word that leave to steer a cluster was taken back, in the `policy` bucket."""
    return f"revocation.{encode_key(cluster)}"


def lever_key(cluster: str) -> str:
    """Key of what was found of a cluster's lever in the `policy` bucket."""
    return f"lever.{encode_key(cluster)}"


DOCUMENT_KEY = "document"
"""Key of the policy document in the `policy` bucket."""


def route_key(tenant: str, submission: str) -> str:
    """Key in the `routes` bucket of the cluster that a submission for `any` was sent to."""
    return f"{encode_key(tenant)}.{encode_key(submission)}"


def kv_subject(bucket: str, key: str) -> str:
    """The subject under a key, for writes that need headers and for mirrors."""
    return f"$KV.{bucket}.{key}"
