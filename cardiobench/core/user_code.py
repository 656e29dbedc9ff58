"""Errors of the user's own code, reported with the line that raised them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb

from cardiobench.core.errors import BadModel, CardioBenchError
from cardiobench.core.resources import PACKAGE


@contextmanager
def user_code(what: str, *passing: type[Exception], error_class: type[CardioBenchError] = BadModel) -> Iterator[None]:
    """Convert any error of the user's own code to one message with the line that raised it.

    Args:
        what: Description of the code, for the message.
        passing: Exceptions that are re-raised for the caller.
        error_class: Class of the raised error.

    Raises:
        CardioBenchError: The code raised an error, which is chained as the cause.
    """
    through: tuple[type[Exception], ...] = (CardioBenchError, MemoryError, *passing)
    try:
        yield
    except through:
        raise
    except (Exception, SystemExit) as error:  # Third-party code may raise anything.
        message = (str(error).strip().splitlines() or [""])[0][:300]
        raise error_class(f"{what} failed{_place(error)}: {type(error).__name__}: {message}") from error


def _place(error: BaseException) -> str:
    """Return the last line of the user's own code in a traceback."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" at {Path(error.filename).name}, line {error.lineno}"
    own = [
        frame
        for frame in extract_tb(error.__traceback__)
        if not frame.filename.startswith((str(PACKAGE), "<")) and "site-packages" not in frame.filename
    ]
    return f" at {Path(own[-1].filename).name}, line {own[-1].lineno}" if own else ""
