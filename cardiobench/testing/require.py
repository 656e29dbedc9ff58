"""Raise errors of failed checks."""


def require(condition: object, message: str) -> None:
    """Raise `AssertionError` with a message unless the condition holds."""
    if not condition:
        raise AssertionError(message)
