"""The `fairlead` command: run it, submit, see the queue, explain a job, look a cluster over, the demo.

`commands` holds the words that a person types, with nothing heavy imported; each of them imports what it runs. `up`
and `demo` start child processes (`python -m fairlead_<service>`) and never import a service.

Behind the words: `upping` and `stack` run a whole instance, over `supervision` (child processes), `server` and `keeper`;
`instance` is how other terminals find it, `connection` how every command reaches NATS. `submitting`, `asking`, `watching`,
`steering`, `approving` and `policy_files` do what their commands say; `tables`, `live` and `words` show it. `demo` runs the demo on the
stack, `report` makes its report. `clusters` is where Kubernetes is, `doctor` looks it over; `examining` and `rehearsing`
are its visit and the dry run of `up`.
"""
