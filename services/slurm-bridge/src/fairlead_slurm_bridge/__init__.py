"""slurm-bridge: Slurm as a frontend. For each slurmctld one bridge leads.

It states what slurmctld has (nodes, partitions, accounts, jobs: facts and no policy) and obeys the verbs of a frontend: levels
become SiteFactors, jobs are taken away.

Where to find what. `observing` reads slurmctld, `domains`, `jobs`, `windows` and `waiting_places` translate what was read, `view` keeps
what is stated, `ladder` turns levels into SiteFactors and back, `bridge` is the loop with the verbs, `store` what is remembered over restarts, `app`
wires it.
"""
