"""A whole Fairlead on this machine, as child processes."""
