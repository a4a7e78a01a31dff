"""Flags that several commands share."""

from dataclasses import dataclass
from typing import Annotated, Literal

from cyclopts import Group, Parameter

RUN = Group("Run it", sort_key=0)
USE = Group("Submit and ask", sort_key=1)
TRY = Group("Try it on paper", sort_key=2)
STEER = Group("Steer it", sort_key=3)

type Format = Literal["table", "json"]

Output = Annotated[Format, Parameter(name=["--output", "-o"])]
"""How a result is printed."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reach:
    """Which Fairlead to talk to."""

    nats: Annotated[str | None, Parameter(env_var="FAIRLEAD_NATS_URL")] = None
    """Where NATS is; the instance that `fairlead up` started, unless given. Credentials: FAIRLEAD_NATS_USER,
    _PASSWORD, _TOKEN, _CREDS, _NKEY_SEED, _TLS_CA, _TLS_CERT, _TLS_KEY."""


HERE = Reach()
"""The running instance."""
