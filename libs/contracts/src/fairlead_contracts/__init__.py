"""What must agree between Fairlead's services: messages, subjects, streams and the policy document.

Nothing here does I/O. A message is a frozen msgspec struct whose field `v` is its major schema version; a reader
accepts fields that it does not know and refuses a major version that it does not know. Golden files in the tests
break when a schema changes.

Messages by who writes them: `state` and `events` (clusters), `decisions` and `members` (scorers, leaders), `submissions`
and their answers, `questions`, `control` (operators), `simulation` (to the simulated cluster). `document` is the policy.
`subjects` and `topology` say where they go; `codec`, `quantities`, `instants` and `tokens` what their parts look like.
"""
