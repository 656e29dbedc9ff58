"""Build wheel and sdist, install the wheel without extras in a new environment, write twins, and score a CSV."""

import csv
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGEST = {"the bundled recordings": 7.5, "everything else": 5.0}  # Compressed sizes in MB.


def call(*line: object, cwd: Path) -> str:
    """Run a command; exit with its output if it fails."""
    done = subprocess.run([str(part) for part in line], cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, line))} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def check_source(archive: Path) -> None:
    """Compare the names in the source distribution with the files that git does not ignore."""
    with tarfile.open(archive) as opened:
        held = {one.name.partition("/")[2] for one in opened if one.isfile()} - {"PKG-INFO"}
    tracked = set(
        filter(None, call("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT).split("\0"))
    )
    if held != tracked:
        sys.exit(f"{archive.name}: {sorted(tracked - held)} are missing, {sorted(held - tracked)} should not be there")


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


def main() -> None:
    """Run all checks in a temporary folder outside the checkout."""
    with tempfile.TemporaryDirectory(prefix="cardiobench-wheel-") as name:
        work = Path(name)
        call(sys.executable, "-m", "build", "--outdir", work, ROOT, cwd=work)
        check_source(*work.glob("*.tar.gz"))
        (wheel,) = work.glob("*.whl")
        sizes = check_sizes(wheel)
        venv.create(work / "env", with_pip=True)
        python = work / "env" / "bin" / "python"
        call(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=work)
        call(python, "-c", "import cardiobench, importlib.util as u; assert u.find_spec('torch') is None", cwd=work)
        call(work / "env" / "bin" / "cardiobench", "references", "ptb_xl_sample/cd", "--out", "refs.csv", cwd=work)
        with (work / "refs.csv").open(encoding="utf-8", newline="") as file:
            test = [row for row in csv.DictReader(file) if row["split"] == "test"]
        with (work / "mine.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "cd_pred"])
            writer.writerows([row["id"], "CD"] for row in test)
        twin = call(work / "env" / "bin" / "cardiobench", "phantom", "georgia", "--out", "twin", cwd=work)
        mirror = call(
            work / "env" / "bin" / "cardiobench", "mirror", "hub", "--datasets", "cpsc2018", "--twins", cwd=work
        )
        if "wrote twin" not in twin or "wrote cpsc2018: synthetic twin" not in mirror or [*work.glob("hub/**/twin.py")]:
            sys.exit(f"the twins were not written as expected:\n{twin}\n{mirror}")
        line = ["--predictions", "mine.csv", "--task", "ptb_xl_sample/cd", "--references", "refs.csv"]
        printed = call(python, "-m", "cardiobench.eval", *line, cwd=work)
        # 26 of 52 test records have the label, so predicting all positive gives F1 2/3 and 0: macro 1/3.
        positive = sum(row["y_true"] == "CD" for row in test)
        expected = 100 * positive / (positive + len(test))  # Macro F1: 2 n / (n + N) for this class, 0 for the other.
        if f"{expected:.2f}" not in printed or "collapsed" not in printed:
            sys.exit(f"the constant prediction was not scored as expected:\n{printed}")
        sys.stdout.write(f"{wheel.name} ({sizes}): installed without extras, imported, scored a CSV\n")


if __name__ == "__main__":
    main()
