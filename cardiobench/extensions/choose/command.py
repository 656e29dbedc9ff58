"""`cardiobench choose`."""

import argparse
from pathlib import Path

HELP = "choose a model from results by constraints, score and cost"
EXAMPLES = """\
A model is chosen on the stored answers for validation patients, and reported on test patients, which take no part in the choice.
  cardiobench choose results --task ptb_xl/cd --max-parameters 30M --use commercial
  cardiobench choose results --suite cardiobench_ecg_v2 --unseen --worst-group 75
For tasks of two classes it gives an operating point for a sensitivity, and what it means at the prevalence of your clinic:
  cardiobench choose results --task ptb_xl/cd --sensitivity 0.95 --prevalence 0.02
"""
PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def amount(text: str) -> float:
    """Return a number that may have a decimal prefix, such as 30M."""
    factor = PREFIXES.get(text[-1:], 1.0)
    try:
        value = factor * float(text[:-1] if factor > 1 else text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0, such as 30000000 or 30M")
    return value


def share(text: str) -> float:
    """Return a share above 0 and at most 1; also of a text such as 2%."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a fraction above 0 and at most 1, such as 0.02 or 2%")
    return value


def rare(text: str) -> float:
    """Return a share below 1."""
    if (value := share(text)) == 1:
        raise argparse.ArgumentTypeError("a prevalence of 1 leaves nobody without the class. Give a fraction below 1")
    return value


def finite(text: str) -> float:
    """Return a number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number, such as 80")
    return value


def lead(text: str) -> str:
    """Return the name of a lead."""
    from cardiobench.data.media.types import LEADS

    if text not in LEADS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a lead: {' '.join(LEADS)}")
    return text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "results", type=Path, nargs="*", metavar="RESULTS", help="folders of results (default: results)"
    )
    parser.add_argument("--suite", default="", metavar="NAME", help="choose over the primary tasks of a suite")
    parser.add_argument("--task", default="", metavar="TASK", help="choose for one task, such as ptb_xl/cd")
    parser.add_argument(
        "--protocol", default="", metavar="NAME", help="protocol with its variant (default: probe, or the only one)"
    )
    box = parser.add_argument_group("constraints")
    box.add_argument("--use", choices=("research", "commercial"), default="", help="use that the licence must allow")
    box.add_argument("--unseen", action="store_true", help="only models known not to have seen the data")
    box.add_argument("--max-parameters", type=amount, metavar="N", help="such as 30M")
    box.add_argument(
        "--max-flops", type=amount, metavar="N", help="floating-point operations per recording, such as 5G"
    )
    box.add_argument("--leads", type=lead, nargs="+", default=[], metavar="LEAD", help="leads that are available")
    box.add_argument(
        "--views", nargs="+", default=[], metavar="VIEW", help="views that are available, for models that name theirs"
    )
    box.add_argument(
        "--min-rate",
        type=amount,
        metavar="R",
        help="minimum recordings per second of one CPU process, reading and encoding, as measured during encoding",
    )
    box.add_argument(
        "--worst-group",
        type=finite,
        metavar="X",
        help="score of the worst subgroup of validation patients, as shown (80 for 80 %%); of an error the largest",
    )
    box.add_argument("--text", action="store_true", help="only models with a text tower")
    box = parser.add_argument_group("operating point of tasks of two classes")
    box.add_argument(
        "--sensitivity", type=share, default=0.9, metavar="S", help="on the validation patients (default: %(default)s)"
    )
    box.add_argument(
        "--prevalence", type=rare, default=float("nan"), metavar="P", help="prevalence where the model will be used"
    )
    parser.add_argument("--json", action="store_true", help="machine-readable, on standard output")


def execute(arguments: argparse.Namespace) -> int:
    """Print the choice; returns the exit code: 1 where no model is left."""
    from cardiobench.cli.output import print_problems
    from cardiobench.core.console import Console
    from cardiobench.extensions.choose import answer
    from cardiobench.extensions.choose.constraints import Constraints
    from cardiobench.extensions.choose.run import choose

    names = ("use", "unseen", "max_parameters", "max_flops", "min_rate", "worst_group", "text")
    limits = {name: getattr(arguments, name) for name in names}
    constraints = Constraints(**limits, leads=tuple(arguments.leads), views=tuple(arguments.views))
    choice, collection = choose(
        arguments.results or [Path("results")],
        suite=arguments.suite,
        task=arguments.task,
        protocol=arguments.protocol,
        constraints=constraints,
        sensitivity=arguments.sensitivity,
        prevalence=arguments.prevalence,
    )
    console = Console(stdout_is_json=arguments.json)
    if arguments.json:
        console.json(answer.to_json(choice))
    print_problems(console, collection.problems)
    console.table("excluded", answer.EXCLUDED, answer.excluded_rows(choice))
    console.table("not told apart from the best, the cheapest first", answer.SET, answer.set_rows(choice))
    console.table("worse than one of the best", answer.SET, answer.other_rows(choice))
    console.table("on test patients", answer.TEST, answer.test_rows(choice))
    console.table("operating point, %, on test patients", answer.POINT, answer.point_rows(choice))
    for note in choice.notes:
        console.print(f"! {note}")
    console.print("")
    console.print(answer.paragraph(choice))
    return 0 if choice.candidates else 1
