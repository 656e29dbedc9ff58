"""Command lines that messages tell the user to run."""

import shlex


def command(*words: object) -> str:
    """Return a `cardiobench` command line, quoted for a shell.

    >>> command("report", "my results")
    "cardiobench report 'my results'"
    """
    return shlex.join(["cardiobench", *map(str, words)])
