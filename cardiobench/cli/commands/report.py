"""Implement `cardiobench report`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import add_results
from cardiobench.core.extensions import contributions, resolve

LAYOUTS = {"latex": "cardiobench.report.latex:write_latex", **contributions("tables")}
"""Mapping from layout to a function (collection, folder) that writes it and returns files and problems."""
HELP = "write results as an HTML page, or as tables in another layout"
GROUP = "results"
EXAMPLES = """\
examples:
  cardiobench report results --out report          the page, the same as Markdown, and figures as SVG with CSV
  cardiobench report results more --png --examples several folders, figures also as PNG, and the worst test items (for this machine only)
  cardiobench report results --layout latex        tables for a paper: intervals, and the best in bold
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    add_results(parser)
    parser.add_argument("--out", type=Path, metavar="DIR", help="output folder (default: the first results folder)")
    parser.add_argument("--layout", choices=("page", *LAYOUTS), default="page", help="what to write (default: page)")
    parser.add_argument("--suite", default="", metavar="NAME", help="rank only the results of this suite")
    parser.add_argument(
        "--pdf", action="store_true", help="also print the page as PDF with Chromium (requires playwright)"
    )
    parser.add_argument("--png", action="store_true", help="also write figures as PNG")
    parser.add_argument(
        "--examples",
        nargs="*",
        metavar="TASK",
        help="show each model's 12 worst test items with their recordings; for these tasks (default: all with data here)",
    )
    parser.add_argument(
        "--leads",
        nargs="+",
        default=(),
        metavar="LEAD",
        help="leads of the ECGs of --examples, or all (default: II V1 V5)",
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="raw data of --examples (default: $CARDIOBENCH_DATA)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write the report or the tables, print the paths and return the exit code."""
    from cardiobench.cli.output import print_files, print_problems, print_results
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig
    from cardiobench.core.registry import look_up
    from cardiobench.data import catalog
    from cardiobench.results.collect import collect
    from cardiobench.scoring.suites import load_suite

    console, out = Console(), arguments.out or arguments.results[0]
    suite = load_suite(arguments.suite).name if arguments.suite else ""
    if arguments.layout != "page" and arguments.pdf:
        raise BadConfig(
            f"--pdf prints the page, but --layout {arguments.layout} does not write one. Remove one of these flags."
        )
    if arguments.leads and arguments.examples is None:
        raise BadConfig("--leads selects the leads for --examples. Add --examples or remove --leads.")
    look_up(arguments.examples or (), catalog.task)  # Raises for unknown names.
    if arguments.layout != "page":
        collection = collect(arguments.results, suite)
        files, problems = resolve(LAYOUTS[arguments.layout])(collection, out)
        print_problems(console, [*collection.problems, *problems])
        print_files(console, files, out)
        return 0
    from cardiobench.report.page.pdf import find_browser, write_pdf
    from cardiobench.report.page.write import write_report

    browser = find_browser() if arguments.pdf else ""
    collection, (page, markdown, *others) = write_report(
        arguments.results,
        out,
        png=arguments.png,
        examples=arguments.examples,
        data_dir=arguments.data_dir,
        leads=arguments.leads,
        suite=suite,
        console=console,
    )
    print_results(console, collection.results, place=page)
    print_problems(console, collection.problems)
    console.print(f"wrote {len(others)} pictures and tables, {markdown}")
    if browser:
        with console.progress(page.name, 1, doing="printing") as advance:
            printed = write_pdf(page, browser)
            advance(1)
        console.print(f"wrote {printed}")
    console.print(f"open {page}")
    return 0
