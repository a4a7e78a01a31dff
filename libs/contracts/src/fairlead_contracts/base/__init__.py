"""What every contract is made of: encoding, errors, and the reading of single values. Knows no message."""
