"""Ports of a scorer's answers, played by hand: who leads the clusters, and the bus by which other scorers are asked."""

from fairlead_contracts.messages.members import LeaderLease


class StatedLeaders:
    """Leaders by these leases, and nobody else."""

    def __init__(self, *leases: LeaderLease) -> None:
        self._leases = leases

    def leader(self, role: str, cluster: str) -> LeaderLease | None:
        """The leader of a role for a cluster."""
        return next((one for one in self._leases if (one.role, one.cluster) == (role, cluster)), None)

    def leaders(self, role: str) -> list[LeaderLease]:
        """The leaders of a role for all clusters."""
        return [one for one in self._leases if one.role == role]


class NobodyElse:
    """The bus of a scorer to which all shards belong: no other scorer is asked."""

    async def request(self, subject: str, payload: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109 # the bus's own
        """Fail the test."""
        raise AssertionError(subject, payload, timeout)
