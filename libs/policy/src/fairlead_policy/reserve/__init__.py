"""Promised starts: `easy` decides who is promised one and who may pass, by the `shadow`, in the words of `reservation`."""
