"""Follow the README in a clone: install as printed, list, and compare with what `make` sets up.

`tests/wheel_smoke.py` runs the README's Python example and the commands of the first hour. Not run: all of `make demo`
and `make test`, which take minutes, `make docs`, the launch of `org/name`, and the two lines that need the Hub.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed"),
]
BLOCK = re.compile(r"```(bash|python|text)\n(.*?)```", re.DOTALL)


def installed_packages(folder: Path) -> Path:
    """Return a folder of links to the packages of this environment, without CardioBench."""
    folder.mkdir()
    for kind in ("purelib", "platlib"):
        for path in Path(sysconfig.get_path(kind)).iterdir():
            if path.suffix != ".pth" and not path.name.startswith("cardiobench") and not (folder / path.name).exists():
                (folder / path.name).symlink_to(path)
    return folder


@pytest.fixture(scope="module")
def clone(root, tmp_path_factory):
    """Return a clone of the checkout, and a function that runs lines of a shell in it, where pip reaches no index.

    The packages that pip would download are on the path, so that it resolves what it is asked for without installing it.
    """
    if not (root / ".git").exists():
        pytest.skip("a copy without history cannot be cloned")
    work = tmp_path_factory.mktemp("newcomer")
    programs = work / "bin"
    programs.mkdir()
    (programs / "python3").write_text(f'#!/bin/sh\nexec "{sys._base_executable}" "$@"\n')
    (programs / "python3").chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST"))}
    env = {
        **inherited,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(installed_packages(work / "packages")),
        "PIP_NO_INDEX": "1",
        "PIP_NO_BUILD_ISOLATION": "0",  # This means "no isolation", as for every option `--no-...` of pip.
        "XDG_CACHE_HOME": str(work / "cache"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
    }
    folder = work / "cardiobench"

    def run(lines: str, cwd: Path = folder, **more: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", lines], cwd=cwd, env=env | more, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (lines, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    run(f"git clone --quiet '{root}' cardiobench", cwd=work)
    return folder, run


def test_readme_is_followed_in_a_clone(clone):
    folder, run = clone
    readme = (folder / "README.md").read_text(encoding="utf-8")
    (install,) = [code for language, code in BLOCK.findall(readme) if language == "bash"]
    before = [line for line in run("make --dry-run demo").splitlines() if line.startswith((".venv", "python3 -m"))]
    run(install)
    where = run("source .venv/bin/activate\npython -c 'import cardiobench; print(cardiobench.__file__)'")
    assert where.strip() == str(folder / "cardiobench" / "__init__.py")
    assert "ptb_xl_sample: cd" in run("source .venv/bin/activate\ncardiobench list")

    # `make` sets up the same environment with more extras; its stamp says that this has been done.
    extras = [
        set(re.search(r'-c constraints\.txt -e "\.\[(.*)\]"', text)[1].split(",")) for text in (install, *before[1:2])
    ]
    assert before[0] == install.splitlines()[0] and extras[0] < extras[1]
    (folder / ".venv" / ".installed").touch()
    assert run("make --dry-run demo") == "HF_HUB_OFFLINE=1 .venv/bin/cardiobench demo\n"
    assert "passed" in run("make test", PYTEST_ADDOPTS="tests/test_packaging.py")
