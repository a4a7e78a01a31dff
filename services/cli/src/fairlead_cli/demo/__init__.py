"""The demo: a three times overloaded cluster on this machine, watched, measured and reported."""
