"""Mutants of the code against the quick tests: which mistake does no test notice?

    OMP_NUM_THREADS=1 python -m benchmarks.mutants [--count 200] [--first 30] [--seconds 60] [--out mutants.jsonl]

Draws mutants by a seed: another comparison, operator, number or truth value, a mean as a median, a value that is not returned.
Each runs in a copy of the checkout, first against the quick tests that import its module, then against those that import a
module which imports it, then against the others of its folder. What is done stands in `--out`, and a second call goes on from there. Ends with the survivors.
"""

import argparse
import ast
import json
import math
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.without_extensions import ROOT, copy_without

PACKAGES = ("scoring", "protocols", "data", "runner", "hub", "results", "tasks", "stats", "extensions")
SEED = 0
OTHER: dict[type, type] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
NAMES = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "mean": "median",
    "argmax": "argmin",
    "argmin": "argmax",
}
STARTING = 5
"""Seconds that pytest and the imports take."""
NO_CODE = ("annotation", "returns", "decorator_list", "type_params")
"""Fields of the syntax tree that compute nothing."""

Mutation = tuple[ast.AST, str, Callable[[], None]]
"""Place, words, and what changes the tree."""


def mutations(tree: ast.AST) -> Iterator[Mutation]:
    """Yield every mutation of a tree, always in the same order."""
    for name, child in ast.iter_fields(tree):
        if name in NO_CODE:
            continue
        for node in child if isinstance(child, list) else [child]:
            if isinstance(node, ast.AST):
                yield from _of_node(node)
                yield from mutations(node)


def _of_node(node: ast.AST) -> Iterator[Mutation]:
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OTHER:
        yield _set(node, "op", OTHER[type(node.op)]())
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in OTHER:
        yield _set(node, "ops", [OTHER[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.If | ast.IfExp) and not isinstance(node.test, ast.Compare | ast.BoolOp):
        yield _set(node, "test", ast.UnaryOp(ast.Not(), node.test))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield _set(node, "value", not node.value if isinstance(node.value, bool) else node.value + 1)
    elif isinstance(node, ast.Return) and node.value and not isinstance(node.value, ast.Constant):
        yield _set(node, "value", ast.Constant(None))
    elif isinstance(node, ast.Call):
        field = {ast.Name: "id", ast.Attribute: "attr"}.get(type(node.func), "")
        if field and getattr(node.func, field) in NAMES:
            yield _set(node.func, field, NAMES[getattr(node.func, field)])


def _set(node: ast.AST, field: str, value: object) -> Mutation:
    return node, f"{type(node).__name__}.{field}", lambda: setattr(node, field, value)


def places() -> list[tuple[str, int]]:
    """Return file and number of every mutation; what states a version is left out."""
    found = []
    for path in sorted(path for name in PACKAGES for path in (ROOT / "cardiobench" / name).rglob("*.py")):
        source = path.read_text("utf-8")
        for number, (node, *_) in enumerate(mutations(ast.parse(source))):
            if not source.splitlines()[node.lineno - 1].startswith(("VERSION", "SCHEMA", "RULES")):  # type: ignore[attr-defined]
                found.append((path.relative_to(ROOT).as_posix(), number))
    return found


def imports(path: Path) -> set[str]:
    """Return the modules of the package that a file imports, in functions too."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return names


def test_files(file: str) -> list[list[str]]:
    """Return the tests that import a module, those that import a module which imports it, and the others of its own folder."""
    module = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    code = {path: imports(path) for path in sorted((ROOT / "cardiobench").rglob("*.py"))}
    users = {
        path.relative_to(ROOT).as_posix().removesuffix(".py").replace("/", ".")
        for path, names in code.items()
        if module in names
    }
    tests = {path.relative_to(ROOT).as_posix(): imports(path) for path in sorted((ROOT / "tests").rglob("test_*.py"))}
    ordered = sorted(tests, key=lambda path: (Path(path).parent.name not in file, len(tests[path])))
    direct = [path for path in ordered if module in tests[path]]
    folder = Path(file.replace("cardiobench/", "tests/", 1)).parent.as_posix()
    second = [path for path in ordered if tests[path] & users and path not in direct]
    return [direct, second, [path for path in ordered if path.startswith(f"{folder}/") and path not in direct + second]]


def _spent() -> float:
    """Return the seconds of a processor that tests have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Run:
    """Quick tests in a copy of the checkout."""

    def __init__(self, folder: Path, seconds: float) -> None:
        """Copy the checkout into a folder; `seconds` of a processor are for one mutant."""
        self.copy, self.seconds = copy_without((), folder / "copy"), seconds
        if (beside := ROOT.parent / "shared").is_dir():
            (folder / "shared").symlink_to(beside)
        self.sound: set[str] = set()
        self.broken: set[str] = set()

    def judge(self, file: str, number: int) -> dict[str, object]:
        """Return what became of one mutant."""
        tree = ast.parse(source := (ROOT / file).read_text("utf-8"))
        node, words, change = list(mutations(tree))[number]
        line = source.splitlines()[node.lineno - 1].strip()  # type: ignore[attr-defined]
        facts = {"file": file, "number": number, "line": node.lineno, "what": words, "code": line}  # type: ignore[attr-defined]
        change()
        try:
            (self.copy / file).write_text(ast.unparse(ast.fix_missing_locations(tree)), "utf-8")
            return facts | self._outcome(file)
        finally:
            shutil.copy(ROOT / file, self.copy / file)

    def _outcome(self, file: str) -> dict[str, object]:
        end, ran = _spent() + self.seconds, False
        for tests in filter(None, test_files(file)):
            while True:
                left = end - _spent()
                failed = self._first_failure(tests, left) if left > 0 else "late"
                ran = True
                if failed == "late":
                    return {"outcome": "late"}
                if not failed:
                    break
                if self._is_sound(failed, file):
                    return {"outcome": "killed", "by": failed}
        return {"outcome": "survived" if ran else "no test"}

    def _first_failure(self, tests: list[str], seconds: float) -> str:
        """Return the first test that fails; "late" where time is up, empty where all pass."""
        skipped = [option for test in sorted(self.broken) for option in ("--deselect", test)]
        line = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-x",
            "-m",
            "not slow",
            "-p",
            "no:cacheprovider",
            *skipped,
            *tests,
        ]
        limit = math.ceil(seconds) + STARTING
        try:  # A shared machine makes tests wait, which is not their time.
            done = subprocess.run(
                line,
                cwd=self.copy,
                capture_output=True,
                text=True,
                timeout=20 * limit,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit)),
            )
        except subprocess.TimeoutExpired:
            return "late"
        if done.returncode < 0:
            return "late"
        if done.returncode in (0, 5):
            return ""
        named = [row.split()[1] for row in done.stdout.splitlines() if row.startswith(("FAILED", "ERROR"))]
        return named[0] if named else tests[0]

    def _is_sound(self, test: str, file: str) -> bool:
        """Tell whether a test passes without the mutant; one that does not is left out from then on."""
        if test not in self.sound | self.broken:
            mutant = (self.copy / file).read_text("utf-8")
            shutil.copy(ROOT / file, self.copy / file)
            (self.broken if self._first_failure([test], 600) else self.sound).add(test)
            (self.copy / file).write_text(mutant, "utf-8")
        return test in self.sound


def main() -> None:
    """Judge the mutants that no earlier call has judged, and print the count of each outcome and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=200, help="mutants drawn")
    parser.add_argument("--first", type=int, help="judge only so many of them")
    parser.add_argument("--seconds", type=float, default=60, help="of a processor, for one mutant")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"))
    options = parser.parse_args()
    drawn = random.Random(SEED).sample(places(), options.count)[: options.first]
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.is_file() else []
    done = {(row["file"], row["number"]) for row in rows}
    with tempfile.TemporaryDirectory() as folder, options.out.open("a") as file:
        run = Run(Path(folder), options.seconds)
        for place in drawn:
            if place not in done:
                rows.append(row := run.judge(*place))
                print(json.dumps(row), file=file, flush=True)
    for outcome in ("killed", "survived", "late", "no test"):
        print(f"{outcome}: {sum(row['outcome'] == outcome for row in rows)} of {len(rows)}")
    for row in rows:
        if row["outcome"] != "killed":
            print(f"{row['outcome']}: {row['file']}:{row['line']} {row['what']}: {row['code']}")


if __name__ == "__main__":
    main()
