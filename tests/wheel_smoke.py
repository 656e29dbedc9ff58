"""Check a release: build it twice from a tag, install the wheel, and follow README and the first hour with it."""

import csv
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGEST = {"the bundled recordings": 7.5, "everything else": 5.0}  # Compressed sizes in MB.
IGNORED = (".venv/pyvenv.cfg", "cardiobench/__pycache__/api.pyc", "docs/_build/index.html", "results/report.html")
OFFLINE = """
import socket

connect = socket.socket.connect

def refuse(self, address):
    if self.family != socket.AF_UNIX:
        raise AssertionError(f"a connection to {address}")
    return connect(self, address)

def unresolved(host, *_, **__):
    raise AssertionError(f"a look-up of {host}")

socket.socket.connect, socket.getaddrinfo = refuse, unresolved
"""


def call(*line: object, cwd: Path, umask: int = -1, **environment: str) -> str:
    """Run a command, with additions to the environment; exit with its output if it fails."""
    command, env = [str(part) for part in line], {**os.environ, **environment}
    done = subprocess.run(command, cwd=cwd, env=env, umask=umask, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def checkout_files() -> list[str]:
    """Return the names of the files of the checkout that git does not ignore."""
    listed = call("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0")
    return [name for name in listed if name and (ROOT / name).exists()]


def tagged_copy(folder: Path, names: list[str], version: str, umask: int) -> Path:
    """Copy the files into a repository of one commit, tagged as docs/releasing.md says; add ignored files."""
    for name in [*names, *IGNORED]:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, path) if name in names else path.write_text(str(folder))
        path.chmod((path.stat().st_mode | 0o666) & ~umask)
    call("git", "init", "--quiet", cwd=folder)
    call("git", "add", "--all", cwd=folder)
    who = ["-c", "user.name=release", "-c", "user.email=release@example.org"]
    call("git", *who, "commit", "--quiet", "--no-verify", "--message", "Release", cwd=folder)
    call("git", "tag", f"v{version}", cwd=folder)
    return folder


def build_twice(work: Path) -> tuple[Path, Path]:
    """Build in two folders, time zones and masks of permissions; return sdist and wheel if both builds are equal."""
    names = checkout_files()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    version = project["tool"]["hatch"]["version"]["fallback-version"]
    epoch = call("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    dists = []
    for folder, zone, umask in (("one", "UTC", 0o022), ("a/longer/path", "Asia/Tokyo", 0o077)):
        copy = tagged_copy(work / folder, names, version, umask)
        line = [sys.executable, "-m", "build", "--outdir", copy / "dist", copy]
        call(
            *line, cwd=work, umask=umask, SOURCE_DATE_EPOCH=epoch, PIP_CONSTRAINT=str(ROOT / "constraints.txt"), TZ=zone
        )
        dists.append({path.name: path for path in (copy / "dist").iterdir()})
    wheel, source = f"cardiobench-{version}-py3-none-any.whl", f"cardiobench-{version}.tar.gz"
    for built in dists:
        if set(built) != {wheel, source}:
            sys.exit(f"the build of the tag v{version} made {sorted(built)}, not {wheel} and {source}")
    for name in (wheel, source):
        if dists[0][name].read_bytes() != dists[1][name].read_bytes():
            sys.exit(f"{name} differs between two builds of one commit: compare {dists[0][name]} and {dists[1][name]}")
    check_source(dists[0][source], names)
    return dists[0][source], dists[0][wheel]


def check_source(archive: Path, names: list[str]) -> None:
    """Compare the names in the source distribution with the files that git does not ignore."""
    with tarfile.open(archive) as opened:
        held = {one.name.partition("/")[2] for one in opened if one.isfile()} - {"PKG-INFO"}
    if held != set(names):
        missing, superfluous = sorted(set(names) - held), sorted(held - set(names))
        sys.exit(f"{archive.name}: {missing} are missing, {superfluous} should not be there")


def check_sizes(wheel: Path) -> str:
    """Compare the compressed sizes of the bundled recordings and of the rest with the largest allowed; return them as text."""
    sizes = dict.fromkeys(LARGEST, 0.0)
    for one in zipfile.ZipFile(wheel).infolist():
        part = "the bundled recordings" if "/records100/" in one.filename else "everything else"
        sizes[part] += one.compress_size / 1e6
    for part, megabytes in sizes.items():
        if megabytes > LARGEST[part]:
            sys.exit(
                f"{wheel.name}: {megabytes:.1f} MB of {part}, {LARGEST[part]} allowed: something is in it by mistake"
            )
    return ", ".join(f"{part} {megabytes:.1f} MB" for part, megabytes in sizes.items())


def check_predictions(python: Path, work: Path) -> None:
    """Score a CSV of constant predictions, and write twins."""
    command = python.with_name("cardiobench")
    call(command, "references", "ptb_xl_sample/cd", "--out", "refs.csv", cwd=work)
    with (work / "refs.csv").open(encoding="utf-8", newline="") as file:
        test = [row for row in csv.DictReader(file) if row["split"] == "test"]
    with (work / "mine.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "cd_pred"])
        writer.writerows([row["id"], "CD"] for row in test)
    twin = call(command, "phantom", "georgia", "--out", "twin", cwd=work)
    mirror = call(command, "mirror", "hub", "--datasets", "cpsc2018", "--twins", cwd=work)
    if "wrote twin" not in twin or "wrote cpsc2018: synthetic twin" not in mirror or [*work.glob("hub/**/twin.py")]:
        sys.exit(f"the twins were not written as expected:\n{twin}\n{mirror}")
    line = ["--predictions", "mine.csv", "--task", "ptb_xl_sample/cd", "--references", "refs.csv"]
    printed = call(python, "-m", "cardiobench.eval", *line, cwd=work)
    positive = sum(row["y_true"] == "CD" for row in test)
    expected = 100 * positive / (positive + len(test))  # Macro F1: 2 n / (n + N) for this class, 0 for the other.
    if f"{expected:.2f}" not in printed or "collapsed" not in printed:
        sys.exit(f"the constant prediction was not scored as expected:\n{printed}")


def check_readme(python: Path, work: Path) -> None:
    """Run the Python example of the README without a network, and compare what it prints with what the README shows.

    The example needs the extra `models`, whose packages are those of this environment: they follow those of the wheel.
    """
    here = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(call(python, "-c", here, cwd=work).strip())
    (packages / "extras.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    where = call(python, "-c", "import cardiobench, torch; print(cardiobench.__file__)", cwd=work)
    if not where.startswith(str(packages)):
        sys.exit(f"cardiobench is imported from {where.strip()}, not from the wheel in {packages}")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", readme, re.DOTALL).groups()
    printed = call(
        python,
        "-c",
        OFFLINE + code,
        cwd=work,
        HF_HUB_OFFLINE="1",
        OMP_NUM_THREADS="1",
        XDG_CACHE_HOME=str(work / "cache"),
    )
    if [line.split() for line in printed.splitlines()] != [line.split() for line in shown.splitlines()]:
        sys.exit(f"README's example printed\n{printed}\nand the README shows\n{shown}")


def check_first_hour(python: Path, work: Path) -> None:
    """Follow docs/first_hour.md as printed, without `make demo`, which takes minutes."""
    page = (ROOT / "docs" / "first_hour.md").read_text(encoding="utf-8")
    folder = work / "first hour"
    folder.mkdir()
    places = {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "XDG_CACHE_HOME": str(work / "cache")}
    printed = []
    for language, code in re.findall(r"```(bash|python)\n(.*?)```", page, re.DOTALL):
        if code != "make demo\n":
            line = ["bash", "-ec", code] if language == "bash" else [python, "-c", code]
            printed.append(call(*line, cwd=folder, HF_HUB_OFFLINE="1", OMP_NUM_THREADS="1", **places))
    if len(printed) != 5 or "collapsed" not in printed[2] or not (folder / "twin").exists():
        sys.exit(f"docs/first_hour.md printed\n{printed}")


def main() -> None:
    """Run all checks in a temporary folder outside the checkout."""
    with tempfile.TemporaryDirectory(prefix="cardiobench-wheel-") as name:
        work = Path(name)
        source, wheel = build_twice(work)
        sizes = check_sizes(wheel)
        venv.create(work / "env", with_pip=True)
        python = work / "env" / "bin" / "python"
        call(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=work)
        call(python, "-c", "import cardiobench, importlib.util as u; assert u.find_spec('torch') is None", cwd=work)
        check_predictions(python, work)
        check_readme(python, work)
        check_first_hour(python, work)
        sys.stdout.write(f"{source.name} and {wheel.name} ({sizes}): two builds are equal; installed without extras, ")
        sys.stdout.write("imported, scored a CSV, and ran README's example and the first hour\n")


if __name__ == "__main__":
    main()
