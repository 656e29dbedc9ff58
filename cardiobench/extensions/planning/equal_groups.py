"""Implement `cardiobench equal-groups`."""

import argparse
import math

from cardiobench.cli.flags import add_json, add_results

HELP = "whether the groups of patients of a result are equal within a margin"
GROUP = "results"
EXAMPLES = """\
No difference shown is not the same as equal. Groups are equal if the interval of each difference lies within the margin.
  cardiobench equal-groups results --task ptb_xl/cd --margin 0.05
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    add_results(parser)
    parser.add_argument("--task", required=True, metavar="TASK", help="task, such as ptb_xl/cd")
    parser.add_argument(
        "--margin",
        type=float,
        default=math.nan,
        metavar="D",
        help="difference that counts as equal, in the unit of the metric (default: that of the suites, if there is one)",
    )
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the groups and return the exit code."""
    from cardiobench.cli.output import print_problems
    from cardiobench.core.console import Console
    from cardiobench.extensions.planning.equality import COLUMNS, EXPLAINED, find_groups
    from cardiobench.extensions.planning.sizes import check_width
    from cardiobench.scoring.score import GENERATED

    if not math.isnan(arguments.margin):
        check_width(arguments.margin, "--margin")
    found = find_groups(arguments.results, arguments.task, arguments.margin)
    console = Console(stdout_is_json=arguments.json)
    if arguments.json:
        console.json(
            {"task": found.task, "margin": found.margin, "groups": [one._asdict() for one in found.equalities]}
        )
    print_problems(console, found.problems)
    title = f"groups of {found.task}, margin {found.number.margin(found.margin, found.unit)}"
    console.table(title, COLUMNS, [one.cells(found.number) for one in found.equalities])
    if found.generated:
        console.remarks([GENERATED])
    console.print(EXPLAINED)
    return 0
