"""Implement `cardiobench reproduce-reference`."""

import argparse
from pathlib import Path

HELP = "compute the tables of the echo benchmark paper from its predictions, as published and corrected"
EXAMPLES = """\
DIR holds splits/ and example_predictions/, with the layout of the published evaluator:
  cardiobench reproduce-reference --inputs evaluation --out tables
writes tables/<dataset>/*.csv as in the paper, the same files by patient and without rounding to
tables/default/, and tables/side_by_side.md, which compares both and explains the differences.
"""
PROFILES = ("paper", "default")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "--inputs", type=Path, required=True, metavar="DIR", help="folder with splits/ and example_predictions/"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="output folder")
    parser.add_argument(
        "--profile", choices=PROFILES, help="only one of the two (default: both, and a page that compares them)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write the tables and return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.extensions.reproduction.page import write_page
    from cardiobench.extensions.reproduction.profiles import BY_PATIENT, PAPER
    from cardiobench.extensions.reproduction.reproduce import reproduce

    console, made, files = Console(), {}, []
    for profile in (PAPER, BY_PATIENT):
        if arguments.profile in (None, profile.name):
            made[profile.name] = reproduce(arguments.inputs, profile)
            folder = arguments.out if profile is PAPER else arguments.out / profile.name
            files += made[profile.name].save(folder)
    notes: dict[tuple[str, str], list[str]] = {}
    for name, tables in made.items():
        for note in tables.notes:
            notes.setdefault(note, []).append(name)
    for (file, sentence), profiles in notes.items():  # Print a note once if both profiles share it.
        only = "" if len(profiles) == len(made) else f" ({profiles[0]} only)"
        console.remarks([f"{file}{only}: {sentence}"])
    for name, tables in made.items():
        for file, reason in tables.failures:
            console.failure(f"{name}, {file}", reason)
    for line in next(iter(made.values())).absent:
        console.print(f"not evaluated: {line}")
    if len(made) == len(PROFILES):
        files.append(write_page(made["paper"], made["default"], arguments.out))
    console.print(f"wrote {len(files)} files below {arguments.out}")
    if len(made) == len(PROFILES):
        console.print(f"wrote {files[-1]}")
    return 1 if any(tables.failures for tables in made.values()) else 0
