"""The admitter: makes one cluster follow the order with the fewest writes, and takes in submitted jobs.

Where to find what. Following the order: `observing` sees (`facts` of the cluster, `fronts` of the scorers, `policy_view`),
`planning` decides for each pool whether and what to write, with the pure parts `merging`, `window` (as long as `pace`
says), `segments` (a band for each class), `steering` and `protection`; while room is free, `waking` (pure) says who is woken, by what
`wakes` keeps; starts are promised by `reserving`, which sees the
frontend's line by `standings` and tells by `reservations` and `reserve_events`; `applying` writes, `written` remembers what is not
seen yet, `setbacks` says when to leave the frontend alone and `rests` which jobs, `lever_watch` says whether the frontend
obeys what is written at all, `releasing` cleans up after a release; `event_log` keeps what was done, `level_events` of
what was written; and `steersman` is the loop over them. Taking jobs in: `lanes` run while this replica leads, `intake` handles a submission,
`admission` rules on it (pure, with `doors`), `creation` makes the job; `answers` and `desk` tell its sender. What speaks
against queued jobs is judged by `objections` (pure) and said by `objecting`. `frontends` speak to queueing systems: a
new one goes there. `record` counts and logs; `app` wires it.
"""

from fairlead_admitter.settings import AdmitterSettings

__all__ = ["AdmitterSettings"]
