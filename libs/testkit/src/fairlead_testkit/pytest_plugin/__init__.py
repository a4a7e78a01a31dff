"""The pytest plugin: labs and servers as fixtures, lanes of workers, second tries."""
