"""slurm-bridge: Slurm as a frontend. For each slurmctld one bridge leads.

It states what slurmctld has (nodes, partitions, accounts, jobs: facts and no policy) and obeys the verbs of a
frontend: levels become SiteFactors, jobs are made and taken away.

`observing` reads slurmctld; `domains`, `jobs`, `windows`, `waiting_turns` and `first_seen` translate what
was read; `view` keeps the statements; `bridge` is the loop with the verbs. `creating`, `submitting` and
`checking` make jobs of submissions, and `store` remembers over restarts. `gating` wires the gate, for jobs
that run as pods: its socket is in `hooks`, the room for pods in `gate`, their life in `pods`. `app` wires
all.
"""
