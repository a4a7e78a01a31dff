"""The source text, read: the sentences that Fairlead says and the settings that pages list."""
