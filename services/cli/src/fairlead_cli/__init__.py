"""The `fairlead` command: run it, submit, see the queue, explain a job, look a cluster over, the demo.

`commands` holds the words that a person types, with nothing heavy imported; each of them imports what it runs. `up`
and `demo` start child processes (`python -m fairlead_<service>`) and never import a service.

Behind the words are rooms, each using those after it alone: `demo` (the demo and its report), `local` (a whole instance
as child processes: `up` and its `stack`), `kueue` (`doctor` and `watchdog`), `slurm` (a slurmctld looked over, scripts
validated), `paper` (the order of a file), `nats` (a server made ready), `policy` (files and the bucket), `client` (a
running instance: found, asked, told, heard, and its answers as tables). `console`, `errors` and `options` serve all of
them.
"""
