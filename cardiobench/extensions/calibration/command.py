"""Implement `cardiobench calibration`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import add_json, add_results

HELP = "calibration and decision curves of a task, with intervals over patients"
GROUP = "results"
EXAMPLES = """\
Slope, intercept, reliability and net benefit of every model on one task, as given and recalibrated on validation patients.
  cardiobench calibration results --task ptb_xl/cd
  cardiobench calibration results --task ptb_xl/super --class MI --thresholds 0.05 0.1 --out calibration
"""
THRESHOLDS = (0.1, 0.2, 0.3, 0.5)


def threshold(text: str) -> float:
    """Parse a threshold probability, above 0 and below 1, or a percentage such as 10%."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a probability above 0 and below 1. Give a threshold such as 0.1 or 10%"
        )
    return value


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    add_results(parser)
    parser.add_argument("--task", required=True, metavar="TASK", help="task with classes, such as ptb_xl/cd")
    parser.add_argument(
        "--class",
        dest="label",
        default="",
        metavar="NAME",
        help="class against the rest (default: the positive class of two)",
    )
    parser.add_argument("--protocol", default="", metavar="NAME", help="protocol with its variant (default: all)")
    parser.add_argument(
        "--thresholds",
        type=threshold,
        nargs="+",
        default=list(THRESHOLDS),
        metavar="P",
        help="probabilities from which a patient is treated, for the table (default: 0.1 0.2 0.3 0.5)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write tables and figures to this folder")
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the tables, write files if asked, and return the exit code."""
    from cardiobench.cli.output import print_files, print_problems
    from cardiobench.core.console import Console
    from cardiobench.extensions.calibration import tables
    from cardiobench.extensions.calibration.answers import find_answers
    from cardiobench.extensions.calibration.write import write

    found = find_answers(arguments.results, arguments.task, arguments.label, arguments.protocol)
    console = Console(stdout_is_json=arguments.json)
    measured = tables.measured(found.answers, sorted(set(arguments.thresholds)))
    if arguments.json:
        console.json({
            "task": found.task,
            "class": found.label,
            "calibration": measured.calibration.to_dict("records"),
            "net benefit": measured.benefit.to_dict("records"),
            "notes": [*found.notes, *measured.notes],
        })  # fmt: skip
    print_problems(console, found.problems)
    console.table(f"calibration of {found.label}, {found.task}", tables.COLUMNS, tables.rows(measured))
    console.table("net benefit per 100 patients", tables.BENEFIT, tables.benefit_rows(measured))
    console.remarks((*found.notes, *measured.notes))
    console.print(tables.EXPLAINED)
    if arguments.out:
        print_files(console, write(found, measured, arguments.out), arguments.out)
    return 0
