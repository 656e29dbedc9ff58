"""Allowed skips: reasons as regular expressions in `skips.txt` and in the files of features."""

import re
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

from tests.features import stated

LISTED = Path(__file__).with_name("skips.txt")


def unlisted_skips(reports: Iterable[Any], environment: str = Path(sys.prefix).name) -> list[str]:
    """Return file and reason of each skip that is not in the list, or that names the make target of this environment.

    Args:
        reports: Reports of skipped tests and files.
        environment: Name of the virtual environment; `make test-cluster` runs in `.venv-cluster`.
    """
    lines = [*LISTED.read_text("utf-8").splitlines(), *chain.from_iterable(stated("skips").values())]
    allowed = re.compile("|".join(line for line in lines if line and not line.startswith("#")))
    target = f"make test-{environment.partition('-')[2]}"
    found = ((file, reason.removeprefix("Skipped: ")) for file, _, reason in (one.longrepr for one in reports))
    return sorted(
        {f"{file}: {reason}" for file, reason in found if not allowed.fullmatch(reason) or reason.endswith(target)}
    )
