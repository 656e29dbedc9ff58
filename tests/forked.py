"""Start processes that have imported the libraries, which takes longer than most tests, but nothing of this package."""

import atexit
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext
from pathlib import Path

LIBRARIES = ["datasets", "matplotlib.pyplot", "nibabel", "pydicom", "pytest", "scipy.stats", "sklearn", "timm", "torch"]


def clean_processes() -> ForkServerContext:
    """Return a context whose processes are forked from one that has only imported `LIBRARIES`."""
    context = get_context("forkserver")
    context.set_forkserver_preload(LIBRARIES)
    return context


CHILD = """
import atexit, os, runpy, sys

for number, file in ((1, {out!r}), (2, {err!r})):
    os.dup2(os.open(file, os.O_WRONLY), number)
os.chdir({cwd!r})
os.environ.clear()
os.environ.update({env!r})
sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
option, what, *rest = {words!r}
sys.argv = [option, *rest]
try:
    if option == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        exec(compile(what, "<string>", "exec"), dict(__name__="__main__"))
finally:
    atexit._run_exitfuncs()
"""


class ForkedPython:
    """Process that runs `python -c CODE ...` or `python -m MODULE ...`, with the methods of `subprocess.Popen` that tests use.

    For tests of what the process does. Tests of how it starts, and of what it imports, start a new interpreter.

    Args:
        words: `-c` or `-m`, then the words that follow it.
        cwd: Folder in which the process runs.
        env: All environment variables, of which `PYTHONPATH` is added in front of the path; None for those of this process.
    """

    def __init__(self, words: Iterable[object], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> None:
        """Start the process."""
        self.args = [str(word) for word in words]
        self._folder = tempfile.TemporaryDirectory(prefix="cardiobench-forked-")
        self._files = [Path(self._folder.name) / name for name in ("out", "err")]
        for file in self._files:
            file.touch()
        out, err = map(str, self._files)
        env = dict(os.environ if env is None else env)
        code = CHILD.format(out=out, err=err, cwd=str(cwd or Path.cwd()), env=env, words=self.args)
        self._process = clean_processes().Process(target=exec, args=(code, {}))
        self._process.start()
        self.pid = self._process.pid
        atexit.register(self.kill)  # If a test failed, Python would wait for the process.

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None while the process runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return the exit code; None while the process runs."""
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal to the process."""
        if self.pid is not None and self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end, and return what was written to standard output and standard error.

        Raises:
            subprocess.TimeoutExpired: The process still runs after `timeout` seconds.
        """
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        out, err = (file.read_text("utf-8") for file in self._files)
        return out, err


def run_python(*words: object, cwd: Path | None = None, env: Mapping[str, str] | None = None):
    """Run `python WORDS` in a forked process (`ForkedPython`) and return the outcome, as `subprocess.run` does."""
    process = ForkedPython(words, cwd, env)
    out, err = process.communicate()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)
