"""Run mutants of the code against the quick tests, to find mistakes that no test detects.

    OMP_NUM_THREADS=1 python -m benchmarks.mutants [--count 200] [--seconds 60] [--out mutants.json] [--again FILE] [tests ...]

A seed selects the mutants: another comparison, operator, number or truth value, a median for a mean, a missing return value.
All of them are compiled into the code, each behind a switch that also records when it is passed. One process imports everything
and collects the tests. Test files nearest to most mutants come first; each runs in a fork that reports which tests pass which
switches, and each undetected mutant runs in another fork against these tests. It then runs against the other tests of
these files, and in a separate process if it is passed at import. Results are saved in `--out`, and a second call continues there.
`--again` runs the mutants of an earlier `--out` after the code has changed; they are found by function and text.
"""

import argparse
import ast
import builtins
import hashlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import math
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType

import pytest
from _pytest.runner import runtestprotocol

from benchmarks.mutations import ROOT, described, draw, mutations, named

STARTING = 30
"""Limit of CPU seconds for imports in a separate process."""
SWITCH = "_is_mutant"
ALIVE = ("no test", "undetected")


class Switches(importlib.abc.MetaPathFinder):
    """Mutants in the imported code, of which at most one is active."""

    def __init__(self, names: list[str]) -> None:
        """Compile the mutants of these names into modules imported from now on."""
        self.names, self.drawn, self.on = names, [named()[name] for name in names], -1
        self.passed = mmap.mmap(-1, len(names))  # Processes forked by tests write here too.
        setattr(builtins, SWITCH, self.switch)
        sys.meta_path.insert(0, self)

    def switch(self, index: int) -> bool:
        """Record that the place of a mutant is passed, and return whether the mutant is active."""
        self.passed[index] = 1
        return index == self.on

    def take(self) -> set[int]:
        """Return the mutants whose places were passed since the last call."""
        found = {index for index, byte in enumerate(self.passed[:]) if byte}
        self.passed[:] = bytes(len(self.drawn))
        return found

    def find_spec(self, name: str, path: object = None, target: object = None) -> importlib.machinery.ModuleSpec | None:
        """Return a module of the package with its switches."""
        base = ROOT / name.replace(".", "/")
        file = base / "__init__.py" if base.is_dir() else base.with_suffix(".py")
        here = {number: i for i, (drawn, number) in enumerate(self.drawn) if ROOT / drawn == file}
        if not here:
            return None
        loader = _Loader(name, str(file), here)
        inside = [str(base)] if base.is_dir() else None
        return importlib.util.spec_from_file_location(name, file, loader=loader, submodule_search_locations=inside)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, here: dict[int, int]) -> None:
        super().__init__(name, path)
        self.here = here

    def get_code(self, fullname: str) -> CodeType:
        tree = ast.parse(Path(self.path).read_text("utf-8"))
        found = enumerate(list(mutations(tree)))
        others = {id(old): (self.here[i], old, other()) for i, (*_, old, other) in found if i in self.here}
        return compile(ast.fix_missing_locations(_Switched(others).visit(tree)), self.path, "exec")


class _Switched(ast.NodeTransformer):
    def __init__(self, others: dict[int, tuple[int, ast.expr, ast.expr]]) -> None:
        self.others = others

    def visit(self, node: ast.AST) -> ast.AST:
        visited = super().generic_visit(node)
        if id(node) not in self.others:
            return visited
        index, old, other = self.others[id(node)]
        test = ast.Call(ast.Name(SWITCH, ast.Load()), [ast.Constant(index)], [])
        return ast.copy_location(ast.IfExp(test, other, old), old)


def imports(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, including imports in functions."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


@cache
def _imports_of(folder: str) -> dict[str, set[str]]:
    return {path.relative_to(ROOT).as_posix(): imports(path) for path in sorted((ROOT / folder).rglob("*.py"))}


def distance(test: str, file: str) -> int:
    """Return 0 if a test file imports a module, 1 if it imports a module that imports it or shares its folder, else 2."""
    module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    names = _imports_of("tests").get(test, set())
    if module in names:
        return 0
    users = {
        path.removesuffix(".py").replace("/", ".")
        for path, used in _imports_of("cardiobench").items()
        if module in used
    }
    return (
        1 if names & users or test.startswith(Path(file.replace("cardiobench/", "tests/", 1)).parent.as_posix()) else 2
    )


def _file(test: str) -> str:
    return test.partition("::")[0]


@cache
def _digest(file: str) -> str:
    return hashlib.sha256((ROOT / file).read_bytes()).hexdigest()[:8]


class Run:
    """Pytest plug-in that runs the tests against mutants."""

    def __init__(self, switches: Switches, out: Path, seconds: float, whole: bool) -> None:
        """Run the mutants of some switches against all or some tests; `seconds` is the CPU limit for one mutant."""
        self.switches, self.out, self.seconds, self.whole = switches, out, seconds, whole
        self.known = json.loads(out.read_text("utf-8")) if out.is_file() else {"passed": {}, "mutants": {}}
        self.sound: dict[str, bool] = {}

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Process one test file after the other, and run the mutants whose places it passes."""
        at_import = self.switches.take()
        self.items = {item.nodeid: item for item in session.items}
        self.home = Path(os.environ["HF_HOME"])
        names = self.switches.names
        rows = [self.known["mutants"].setdefault(name, described(name)) for name in names]
        if self.known.get("drawn") != names:  # The places that tests pass are numbers in this list.
            self.known |= {"drawn": names, "passed": {}}
        for reach in (1, 2):  # Run tests related to a mutant's module first.
            left = list(dict.fromkeys(map(_file, self.items)))
            while left:
                alive = [(index, row) for index, row in enumerate(rows) if row["outcome"] in ALIVE]
                near = {test: [pair for pair in alive if distance(test, pair[1]["file"]) <= reach] for test in left}
                left.remove(file := max(left, key=lambda test: len(near[test])))
                passing = self._passing(file) if near[file] else {}
                for index, row in near[file]:
                    self._judge(index, row, [name for name in passing if index in passing[name]])
                self._save()
        for index, row in enumerate(rows):
            if row["outcome"] in ALIVE and self.whole:
                self._judge_again(index, row, index in at_import)
                self._save()
        return True

    def _save(self) -> None:
        self.out.write_text(json.dumps(self.known), "utf-8")

    def _passing(self, file: str) -> dict[str, list[int]]:
        """Return the places that each test of a file passes, without failing tests."""
        known = self.known["passed"].get(file, {})
        if known.get("digest") != _digest(file):
            started = _spent()
            said, late = self._fork(
                [item for name, item in self.items.items() if _file(name) == file], -1, 4 * self.seconds
            )
            tests = {name: places for name, passed, places in said if passed}
            spent = round(_spent() - started, 1)
            known = {
                "digest": _digest(file),
                "seconds": spent,
                "late": late,
                "failed": len(said) - len(tests),
                "tests": tests,
            }
            self.known["passed"][file] = known
        return {name: places for name, places in known["tests"].items() if name in self.items}

    def _judge(self, index: int, row: dict, names: list[str]) -> None:
        """Run the tests that a mutant has not passed yet, and record the outcome."""
        tried, started = set(row["undetected"]), _spent()
        names = [name for name in names if _key(name) not in tried]
        while names:
            said, late = self._fork([self.items[name] for name in names], index, max(1, self.seconds - row["seconds"]))
            failed = said[-1][0] if said and not said[-1][1] else ""
            if not failed or self._is_sound(failed):
                outcome = "detected" if failed else "late" if late else "undetected"
                passed = [] if failed or late else [*row["undetected"], *map(_key, names)]
                row |= {"outcome": outcome, "by": failed, "undetected": passed}
                break
            names.remove(failed)
        row["seconds"] = round(row["seconds"] + _spent() - started, 1)

    def _judge_again(self, index: int, row: dict, at_import: bool) -> None:
        """Run all tests of near files that pass a place, because caches and fixtures hide dependencies."""
        before = row["seconds"], row["outcome"]
        near = [file for file in self.known["passed"] if distance(file, row["file"]) < 2]
        if at_import:
            started = _spent()
            if near and (failed := self._in_process(near, index)):
                row |= {"outcome": "detected", "by": failed}
            row["seconds"] = round(row["seconds"] + _spent() - started, 1)
            return
        passing = {file: self.known["passed"][file]["tests"] for file in near}
        row["seconds"] = 0.0
        self._judge(
            index,
            row,
            [
                name
                for tests in passing.values()
                if any(index in places for places in tests.values())
                for name in tests
                if name in self.items
            ],
        )
        row["seconds"] = round(row["seconds"] + before[0], 1)
        if row["outcome"] == "late":
            row["outcome"] = before[1]

    def _is_sound(self, name: str) -> bool:
        """Return whether a test passes alone and without a mutant."""
        if name not in self.sound:
            said, _ = self._fork([self.items[name]], -1, 600)
            self.sound[name] = bool(said) and said[0][1]
        return self.sound[name]

    def _fork(self, items: list[pytest.Item], index: int, seconds: float) -> tuple[list[list], bool]:
        """Run tests in a fork; return name, success and places of each (for a mutant: of the failure), and whether time ran out."""
        reader, writer = os.pipe()
        before = set(self.home.rglob("*"))
        if not (child := os.fork()):
            try:
                os.setsid()
                self._limit(seconds)
                self.switches.on = index
                self._run(items, writer, index >= 0)
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as file:
            said = [json.loads(line) for line in file if line.endswith("\n")]
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError):  # Processes that a test started and left behind.
            os.killpg(child, signal.SIGKILL)
        for path in set(self.home.rglob("*")) - before:  # A mutant must not leave files for the next one.
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        return said, os.WIFSIGNALED(status)

    @staticmethod
    def _limit(seconds: float) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds) + 5))
        signal.alarm(math.ceil(30 * seconds))  # On a shared machine tests wait, so measure their CPU time.

    def _run(self, items: list[pytest.Item], writer: int, first: bool) -> None:
        """Run tests in this process, up to the first failure or all; write one line for each."""
        for item, following in zip(items, [*items[1:], None], strict=True):
            self.switches.take()
            failed = any([report.failed for report in runtestprotocol(item, log=False, nextitem=following)])
            said = [item.nodeid, not failed, sorted(self.switches.take())]
            if not first or failed:
                os.write(writer, f"{json.dumps(said)}\n".encode())
            if first and failed:
                return

    def _in_process(self, files: list[str], index: int) -> str:
        """Return the test that detects a mutant in code that runs at import, in a separate process."""
        failed = self._process(files, index)
        return failed if failed and not self._process([failed], -1) else ""

    def _process(self, tests: list[str], index: int) -> str:
        mine = [sys.executable, "-m", "benchmarks.mutants", "--again", str(self.out), "--only", str(index)]
        limit = self.seconds + STARTING
        done = subprocess.run(
            [*mine, *tests], cwd=ROOT, capture_output=True, text=True, preexec_fn=lambda: self._limit(limit)
        )
        named = [row.split()[1] for row in done.stdout.splitlines() if row.startswith(("FAILED", "ERROR"))]
        return (named or tests)[0] if done.returncode in (1, 2, 3, 4) else ""


def _key(name: str) -> str:
    return f"{_digest(_file(name))} {name}"


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _pytest(tests: Iterable[str], folder: str, plugin: list[object]) -> int:
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", f"--basetemp={folder}/tests"]
    return int(pytest.main([*options, *tests], plugins=plugin))


def main() -> None:
    """Run the mutants without an outcome from an earlier call; print the count of each outcome and the undetected mutants."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tests", nargs="*", default=["tests"], help="files and folders of tests")
    parser.add_argument("--count", type=int, default=200, help="number of mutants")
    parser.add_argument("--seconds", type=float, default=60, help="limit of CPU seconds per mutant")
    parser.add_argument("--out", type=Path, default=Path("mutants.json"))
    parser.add_argument(
        "--again", type=Path, help="earlier file of --out, whose mutants are run instead of a new selection"
    )
    parser.add_argument("--only", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    names = json.loads(options.again.read_text("utf-8"))["drawn"] if options.again else draw(options.count)
    gone = [name for name in names if name not in named()]
    switches = Switches([name for name in names if name not in gone])
    with tempfile.TemporaryDirectory() as folder:
        if options.only is not None:
            switches.on = options.only
            sys.exit(_pytest(options.tests, folder, []))
        _pytest(options.tests, folder, [Run(switches, options.out, options.seconds, options.tests == ["tests"])])
    rows = list(json.loads(options.out.read_text("utf-8"))["mutants"].values())
    for outcome in ("detected", "undetected", "late", "no test"):
        print(f"{outcome}: {sum(row['outcome'] == outcome for row in rows)} of {len(rows)}")
    for row in rows:
        if row["outcome"] != "detected":
            print(f"{row['outcome']}: {row['file']}:{row['line']} {row['what']}: {row['code']}")
    for name in gone:
        print(f"code changed: {name}")


if __name__ == "__main__":
    main()
