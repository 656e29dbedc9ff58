"""Implement `cardiobench readers`."""

import argparse
from pathlib import Path

HELP = "write the readings of CODE-test by a network and by doctors as files of predictions"
GROUP = "data"
EXAMPLES = """\
Compare your predictions for the 827 ECGs of CODE-test with a published network and doctors:
  cardiobench readers --out readers
  cardiobench compare mine.csv readers/cardiology_residents.csv --task code_test/six --references readers/references.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "--out", type=Path, default=Path("readers"), metavar="DIR", help="output folder (default: %(default)s)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write the references and one file per reader; return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.core.tables import write_csv
    from cardiobench.extensions.code_test_readers.readings import READERS, answers, references

    written = [write_csv(answers(reader), arguments.out / f"{reader}.csv") for reader in READERS]
    for path in (*written, references().write(arguments.out / "references.csv")):
        Console().print(f"wrote {path}")
    return 0
