"""`fairlead doctor`: is a cluster fit to be steered, and are its queues, flavors and nodes as they are meant to be?

`reading` takes a `Survey` in one go, by reads and one dry run. `checks` are pure functions of it, a module a theme, each
giving `findings`: what, why it matters, the command or YAML that mends it. `verdict` weighs and shows them, and
`doctor_run` puts it together: leave to steer is kept on NATS, where the admitter looks for it (`fairlead_cli.client.leave`).
"""
