"""Copy the checkout without some extensions: `python -m tests.without_extensions OUT` leaves out all of them."""

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from cardiobench.core.extensions import PACKAGE

ROOT = Path(__file__).parents[1]


def copy_without(names: Iterable[str], out: Path) -> Path:
    """Copy files tracked by git, and new ones, without some extensions and their tests; return the folder."""
    left_out = [f"{place}/{name}/" for name in names for place in ("cardiobench/extensions", "tests/extensions")]
    git = ("git", "-C", str(ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    listed = subprocess.run(git, capture_output=True, text=True, check=True).stdout.split("\0")
    for file in listed:
        if file and (ROOT / file).is_file() and not file.startswith(tuple(left_out)):
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, out / file)
    return out


def own_extensions() -> tuple[str, ...]:
    """Return the names of the extensions that are folders of this package."""
    return tuple(sorted(path.parent.name for path in (ROOT / PACKAGE.replace(".", "/")).glob("*/__init__.py")))


if __name__ == "__main__":
    copy_without(own_extensions(), Path(sys.argv[1]))
