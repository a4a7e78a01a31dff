"""The admitter: makes one cluster follow the order with the fewest writes, and takes in submitted jobs.

Where to find what. Following the order: `observing` sees (`facts` of the cluster, `fronts` of the scorers, `policy_view`),
`merging` and `steering` decide what to write (pure), `applying` writes, `written` remembers what is not seen yet, and
`steersman` is the loop over them. Taking jobs in: `lanes` run while this replica leads, `intake` handles a submission,
`admission` rules on it (pure, with `doors`), `creation` makes the job; `answers` and `desk` tell its sender. What speaks
against queued jobs is judged by `objections` (pure) and said by `objecting`. `frontends` speak to queueing systems: a
new one goes there. `record` counts and logs; `app` wires it.
"""

from fairlead_admitter.settings import AdmitterSettings

__all__ = ["AdmitterSettings"]
