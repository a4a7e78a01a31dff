"""slurm-bridge: Slurm as a frontend. For each slurmctld one bridge leads.

It states what slurmctld has (nodes, partitions, accounts, jobs: facts and no policy) and obeys the verbs of a
frontend: levels become SiteFactors, jobs are made and taken away. Its rooms:

- `statements`: what was read, translated: `partition_pools`, `jobs` and `first_seen`; `stated_view` keeps the statements
- `gate`: the room that there is for pods of Slurm's jobs
- `pods`: their life
- `hooks`: the gate's socket for Slurm's hooks

`observing` reads slurmctld; `bridge` is the loop with the verbs; `accounted_ends` asks how jobs ended that nobody saw end.
`creating`, `submitting` and `checking` make jobs of submissions, and `store` remembers over restarts. `gating` wires the gate, for jobs that run as pods; `app` wires all.
"""
