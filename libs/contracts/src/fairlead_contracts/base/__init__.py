"""The base of every contract: encoding, errors, and the reading of single values. Knows no message."""
