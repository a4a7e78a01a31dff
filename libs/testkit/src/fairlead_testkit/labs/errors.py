"""The root of all labs' errors."""


class LabError(Exception):
    """A lab did not do as it was told. Who catches what any lab raises need not know which."""
