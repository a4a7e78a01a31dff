"""The `fairlead` command: run it on a laptop, submit, see the queue, explain a job, the demo.

`commands` holds the words that a person types, with nothing heavy imported; each of them imports what it runs. `up`
and `demo` start child processes (`python -m fairlead_<service>`) and never import a service.
"""
