"""What must agree between Fairlead's services: messages, subjects, streams and the policy document.

Nothing here does I/O. A message is a frozen msgspec struct whose field `v` is its major schema version; a reader
accepts fields that it does not know and refuses a major version that it does not know. Golden files in the tests
break when a schema changes.
"""
