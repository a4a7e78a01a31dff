"""The state: what clusters and policy state, as pools of jobs in order, with the use that is past."""
