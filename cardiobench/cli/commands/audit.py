"""Implement `cardiobench audit`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import add_json

HELP = "check a copy of a dataset: counts, split leakage, duplicates, missing files, faulty recordings"
GROUP = "data"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("dataset", metavar="DATASET", help="dataset, such as tmed2")
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument(
        "--no-media",
        action="store_true",
        help="skip reading the recordings, so that neither duplicates nor faulty recordings are found",
    )
    parser.add_argument(
        "--sheet", type=Path, metavar="FILE", help="PNG with the remarked recordings, worst first (with matplotlib)"
    )
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the findings, one per line, with some names; return the exit code."""
    from cardiobench.cli.contact_sheet import check_sheet, write_sheet
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig, first_n
    from cardiobench.data import catalog
    from cardiobench.data.audit import audit, examine_recordings, open_folder

    if arguments.sheet and arguments.no_media:
        raise BadConfig("--sheet shows recordings, which --no-media skips. Leave one of them out.")
    check_sheet(arguments.sheet)
    console = Console(stdout_is_json=arguments.json)
    media, note = not arguments.no_media, ""
    if media and not catalog.builder(arguments.dataset).has_recordings():
        if arguments.sheet:
            raise BadConfig(f"--sheet shows recordings, and {arguments.dataset} has none. Leave it out.")
        media, note = False, f"{arguments.dataset} was adopted without recordings, so only its table is checked"
    source, examined = open_folder(arguments.dataset, arguments.data_dir), None
    if media:
        with console.progress(arguments.dataset, len(source.frame), doing="reading") as advance:
            examined = examine_recordings(source, advance)
    findings = audit(source, media=media, examined=examined)
    if arguments.json:
        console.json({"dataset": arguments.dataset, "findings": findings})
    else:
        rows = [(one.check, str(one.count), one.unit, one.note, first_n(one.examples)) for one in findings]
        console.table(f"Audit of {arguments.dataset}", ("check", "found", "of", "note", "names"), rows)
    console.remarks([note] if note else [])
    if arguments.sheet and examined is not None:
        write_sheet(source, examined, arguments.sheet, console)
    return 0
