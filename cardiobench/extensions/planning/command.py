"""Implement `cardiobench plan`."""

import argparse
import math
from pathlib import Path

from cardiobench.cli.flags import add_json

HELP = "patients needed for an interval, a score above the floor, and to tell two models apart"
GROUP = "results"
EXAMPLES = """\
Before a study: closed forms for an expected score; or the variation of one or two results of a pilot study.
  cardiobench plan --task ptb_xl/cd --margin 0.03 --power 0.8 --prevalence 0.2
  cardiobench plan --task camus/ef --margin 1 --score 5 --correlation 0.6
  cardiobench plan --task ptb_xl_sample/cd --margin 0.03 --results a/ptb_xl_sample__cd.json b/ptb_xl_sample__cd.json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("--task", required=True, metavar="TASK", help="task, such as ptb_xl/cd")
    parser.add_argument(
        "--margin",
        type=float,
        required=True,
        metavar="D",
        help="difference to be shown, in the unit of the metric (0.03 for 3 points of a share)",
    )
    parser.add_argument(
        "--power", type=float, default=0.8, metavar="P", help="share of studies that show it (default: 0.8)"
    )
    parser.add_argument(
        "--metric", default="", metavar="NAME", help="number, such as auroc (default: the ranking metric)"
    )
    numbers = {
        "--half-width": ("W", "half-width of the interval (default: the margin)"),
        "--score": ("S", "expected score (default: 0.7, 0.8 and 0.9 of a share)"),
        "--floor": ("F", "floor (default: that of the metric)"),
        "--prevalence": ("P", "share of the positive class (default: 0.5)"),
        "--correlation": ("R", "correlation of the errors of two models (default: 0, 0.5 and 0.8)"),
    }
    for flag, (metavar, text) in numbers.items():
        parser.add_argument(flag, type=float, default=math.nan, metavar=metavar, help=text)
    parser.add_argument(
        "--tests", type=int, default=1, metavar="N", help="tests that are corrected together (default: 1)"
    )
    parser.add_argument(
        "--results", type=Path, nargs="+", default=[], metavar="JSON", help="one or two result files of a pilot study"
    )
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the plan and return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig
    from cardiobench.extensions.planning.margins import NONE_GIVEN
    from cardiobench.extensions.planning.plan import PlanRequest, most, plan
    from cardiobench.extensions.planning.sizes import MOST, check_power, check_width

    check_power(arguments.power)
    check_width(arguments.margin, "--margin")
    if not math.isnan(arguments.half_width):
        check_width(arguments.half_width, "--half-width")
    if not (math.isnan(arguments.prevalence) or 0 < arguments.prevalence < 1):
        raise BadConfig(f"--prevalence {arguments.prevalence:g}: give a fraction above 0 and below 1.")
    if not (math.isnan(arguments.correlation) or -1 < arguments.correlation < 1):
        raise BadConfig(f"--correlation {arguments.correlation:g}: give a number above -1 and below 1.")
    if arguments.tests < 1:
        raise BadConfig(f"--tests {arguments.tests}: give a whole number of at least 1.")
    if len(arguments.results) > 2:
        raise BadConfig(f"--results names {len(arguments.results)} files. Give one, or two to be told apart.")
    if arguments.results:
        for name in ("score", "prevalence", "correlation"):
            if not math.isnan(getattr(arguments, name)):
                raise BadConfig(f"--{name} is for a plan without --results, which state it themselves. Leave it out.")
    given = {name: getattr(arguments, name) for name in PlanRequest.__dataclass_fields__ if name != "results"}
    request = PlanRequest(**given, results=tuple(arguments.results))
    found = plan(request)
    console = Console(stdout_is_json=arguments.json)
    if arguments.json:
        console.json({
            "task": found.task.name,
            "metric": found.number.key,
            "sizes": [vars(one) for one in found.sizes],
            "validation": {str(area): sizes._asdict() for area, sizes in found.validation.items()},
            "margin": found.margin._asdict(),
            "notes": found.notes,
        })  # fmt: skip
    rows = [(one.question, one.assumed, f"{one.patients:,}" if one.patients else f"> {MOST:,}") for one in found.sizes]
    title = f"test patients for {found.task.name}, {found.number.key}, power {100 * arguments.power:g} %"
    console.table(title, ("to show", "assumed", "patients"), rows)
    if largest := most(found.sizes):
        console.print(f"largest of these: {largest:,} patients")
    areas = [(f"{area:g}", *(f"{size:,}" for size in sizes)) for area, sizes in found.validation.items()]
    columns = ("AUROC", "observed / expected ± 0.1", "calibration slope ± 0.1", "AUROC ± 0.05")
    console.table("to validate a calibrated model (Riley et al. 2021)", columns, areas)
    unit = found.task.unit
    suites = found.margin.of_suites
    console.print(
        f"clinical margin of {found.number.key}: {found.margin.clinical}"
        + (f" ({found.margin.source})" if found.margin.source else "")
    )
    console.print(f"margin of the suites: {NONE_GIVEN if suites is None else found.number.margin(suites, unit)}")
    console.remarks(found.notes)
    return 0
