"""Implement `cardiobench audit`."""

import argparse
from pathlib import Path

HELP = "check a copy of a dataset: counts, split leakage, duplicates, missing files"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="dataset, such as tmed2")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument(
        "--no-media", action="store_true", help="skip reading the recordings, so that duplicates are not found"
    )
    parser.add_argument("--json", action="store_true", help="write JSON to standard output")


def execute(arguments: argparse.Namespace) -> int:
    """Print the findings, one per line, with some names; return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.core.errors import first_n
    from cardiobench.data.audit import audit_folder

    findings = audit_folder(arguments.dataset, arguments.data_dir, media=not arguments.no_media)
    console = Console(stdout_is_json=arguments.json)
    if arguments.json:
        console.json({"dataset": arguments.dataset, "findings": findings})
        return 0
    rows = [(one.check, str(one.count), one.unit, one.note, first_n(one.examples)) for one in findings]
    console.table(f"Audit of {arguments.dataset}", ("check", "found", "of", "note", "names"), rows)
    return 0
