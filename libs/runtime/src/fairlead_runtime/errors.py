"""The errors of this library, under one root. None is worth a retry by the process that raises it."""


class ServiceError(Exception):
    """A service cannot start or go on. Its message is meant for the operator and needs no traceback."""


class SettingsError(ServiceError):
    """Settings that cannot be taken; carries every problem found, not only the first."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class TaskEndedError(ServiceError):
    """A task that runs as long as the service does came to an end, although nobody asked the service to stop."""

    def __init__(self, task: str) -> None:
        super().__init__(f"task {task!r} ended although the service was not asked to stop")
        self.task = task


class PortTakenError(ServiceError):
    """The health port cannot be opened."""
