"""The admitter: makes one cluster follow the order with the fewest writes, and takes in submitted jobs.

One turn of `reconciler` goes through the rooms in this order, and each room knows only those before it:

- `observe`: `watch` mirrors what is stated; `facts` of the cluster, the `decision_gate` between scorers and frontend, the
  `policy_view`; `expectations` are what was written and is not seen yet, `job_backoff` which jobs are left alone.
- `decide`: the `planner` remembers, and views a pool; `deciding` says of a view whether to write and what, by
  `merged_order` (a window as long as `pace` says), `steering` and `protection`; while room is free, `waking` says who is
  woken, by what `wake_state` keeps, and `restraint` what waits for it; starts are promised by `reserving`, which sees the
  frontend's line by `frontend_order`; an `outcome` is what became of a plan.
- `report`: `record` counts and logs; `event_log` keeps what was done, `objections` say what speaks against a job,
  `replies` tell senders.
- `apply`: `level_applier` writes, `frontend_backoff` says who is left alone after a failure,
  `lever_probe` whether the frontend obeys, `release` cleans up.
- `intake`: `leader_consumers` run while this replica leads; `submission_handler` handles a submission, `admission` rules on it, `creation`
  makes the job, `answers` follow what becomes of it.

`frontends` speak to queueing systems: a new one goes there. `app` wires it.
"""

from fairlead_admitter.settings import AdmitterSettings

__all__ = ["AdmitterSettings"]
