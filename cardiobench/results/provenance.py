"""Create the stamp of a result: package versions, commit and time."""

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from cardiobench.core.libraries import installed_version

_PACKAGES = ("cardiobench", "numpy", "scipy", "scikit-learn", "pandas", "torch")


def stamp(**facts: Any) -> dict[str, Any]:
    """Return versions, commit and time with further facts of the run."""
    versions = {name: installed for name in _PACKAGES if (installed := installed_version(name))}
    commit = _commit()
    return {
        **versions,
        "python": platform.python_version(),
        **({"commit": commit} if commit else {}),
        **facts,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


@cache
def _commit() -> str | None:
    """Return the commit of the checkout, or None for an installed package."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None
    try:
        done = subprocess.run(
            ["git", "-C", str(checkout), "rev-parse", "--verify", "HEAD"], capture_output=True, text=True, check=False
        )
    except OSError:
        return None
    return done.stdout.strip() or None
