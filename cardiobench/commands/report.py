"""`cardiobench report`."""

import argparse
from pathlib import Path

HELP = "one page of results that people can read, or the papers' tables"
EXAMPLES = """\
examples:
  cardiobench report results --out report              the page, its Markdown twin, pictures as SVG with CSV
  cardiobench report results more --png --examples     several folders; PNG too; the worst test items, on this machine only
  cardiobench report results --layout paper            Tables 1-3 of the echo paper, 3-4 of the ECG paper
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Its flags."""
    parser.add_argument("results", type=Path, nargs="*", default=[Path("results")], metavar="RESULTS")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: the first results folder itself")
    parser.add_argument("--layout", choices=("page", "paper"), default="page", help="default: page")
    parser.add_argument("--png", action="store_true", help="pictures as PNG too")
    parser.add_argument(
        "--examples",
        nargs="*",
        metavar="TASK",
        help="show the worst 12 test items of each model with their recordings, of these tasks or of all with data here",
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="raw data of --examples (default: $CARDIOBENCH_DATA)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write it; returns the exit code."""
    out = arguments.out or arguments.results[0]
    if arguments.layout == "paper":
        from cardiobench.report.paper.write import print_tables, write_tables

        print_tables(write_tables(arguments.results, out), out)
        return 0
    from cardiobench.report.page.say import report

    report(arguments.results, out, arguments.png, arguments.examples, arguments.data_dir)
    return 0
