"""The contracts between Fairlead's services: messages, subjects, streams and the policy document.

Nothing here does I/O. A message is a frozen msgspec struct whose field `v` is its major schema version; a reader
accepts fields that it does not know and refuses a major version that it does not know. Golden files in the tests
break when a schema changes.

Rooms, each using those after it alone: `snapshot` (all that an order is made from, as a file), `policyfile` (the policy
document) and `messages` (by who writes them: `state` and `events` clusters, `decisions` and `members` scorers and
leaders, `submissions` their senders, `questions` people, `control` operators), `frontend` (what one can do, the verbs
that it obeys, cards, marks) and `topology` (streams, buckets, durables), `subjects` (where messages go), `base`
(encoding, errors, quantities, instants, tokens).
"""
