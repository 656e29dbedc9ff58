"""Check that `make` says in one line what a machine lacks."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def machine(root, tmp_path):
    """Return a function that runs a target of the Makefile where only a shell and the given programs are on the path."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(root / name, tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()

    def run(target: str, **scripts: str) -> subprocess.CompletedProcess:
        for name, script in scripts.items():
            (programs / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
            (programs / name).chmod(0o755)
        line = [shutil.which("make"), target, f"SHELL={shutil.which('sh')}"]
        # Inside `make test`, an inner make would say which folder it enters.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
        env = {**inherited, "PATH": str(programs)}
        return subprocess.run(line, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run


@pytest.mark.parametrize(
    ("scripts", "message"),
    [
        ({}, "python3 is missing. Install it: apt install python3 python3-venv"),
        ({"python3": 'case "$2" in *version*) exit 1;; esac'}, "python3 is not Python 3.11 to 3.13. Name another one:"),
        ({"python3": 'case "$2" in *venv*) exit 1;; esac'}, "python3 has no venv module. Install it: apt install"),
    ],
)
def test_python_that_cannot_make_an_environment_is_named(machine, scripts, message):
    done = machine("demo", **scripts)
    first, *rest = done.stderr.splitlines()
    assert done.returncode and first.startswith(message) and done.stdout == ""
    assert all(line.startswith(("make", shutil.which("make"))) for line in rest)


def test_absent_npm_is_no_failure(machine):
    done = machine("workflows")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "npm is missing, so the workflows are not checked. Install it: apt install npm\n"


@pytest.mark.parametrize("browser", [(), ("chromium",), ("google-chrome-stable",)])
def test_absent_browser_is_named_before_the_slow_tests(machine, tmp_path, browser):
    installed = tmp_path / ".venv" / ".installed"
    installed.parent.mkdir()
    installed.touch()
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f"#!{shutil.which('sh')}\n")
    python.chmod(0o755)
    done = machine("test-slow", **dict.fromkeys(browser, ""))
    assert done.returncode == 0, done.stderr
    assert ("apt install chromium" in done.stdout) is not bool(browser)
