"""Implement `cardiobench choose`."""

import argparse

from cardiobench.cli.flags import add_json, add_results

HELP = "choose a model from results by constraints, score and cost"
GROUP = "results"
EXAMPLES = """\
Choose a model on validation predictions and report its performance on separate test patients.
  cardiobench choose results --task ptb_xl/cd --max-parameters 30M --use commercial
  cardiobench choose results --suite cardiobench_ecg_v2 --unseen --worst-group 75
For binary tasks, also give an operating point with a target sensitivity and its meaning at the prevalence of your
clinic:
  cardiobench choose results --task ptb_xl/cd --sensitivity 0.95 --prevalence 0.02
"""
PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def amount(text: str) -> float:
    """Parse a number with an optional decimal prefix, such as 30M."""
    factor = PREFIXES.get(text[-1:], 1.0)
    try:
        value = factor * float(text[:-1] if factor > 1 else text)
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0, such as 5000 or 30M")
    return value


def share(text: str) -> float:
    """Parse a fraction above 0 and at most 1, or a percentage such as 2%."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a fraction above 0 and at most 1, such as 0.95 or 95%")
    return value


def rare(text: str) -> float:
    """Parse a fraction below 1."""
    if (value := share(text)) == 1:
        raise argparse.ArgumentTypeError("a prevalence of 1 leaves no negative cases. Give a fraction below 1")
    return value


def finite(text: str) -> float:
    """Parse a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number, such as 80")
    return value


def lead(text: str) -> str:
    """Parse the name of an ECG lead."""
    from cardiobench.data.media.types import LEADS

    if text not in LEADS:
        raise argparse.ArgumentTypeError(f"'{text}' is not a lead: {' '.join(LEADS)}")
    return text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    add_results(parser)
    parser.add_argument("--suite", default="", metavar="NAME", help="choose over the primary tasks of a suite")
    parser.add_argument("--task", default="", metavar="TASK", help="choose for one task, such as ptb_xl/cd")
    parser.add_argument(
        "--protocol",
        default="",
        metavar="NAME",
        help="protocol with its variant (default: probe, or the only protocol found)",
    )
    box = parser.add_argument_group("constraints")
    box.add_argument("--use", choices=("research", "commercial"), default="", help="use that the licence has to permit")
    box.add_argument(
        "--unseen", action="store_true", help="require that the model has not seen the data in pretraining"
    )
    box.add_argument("--max-parameters", type=amount, metavar="N", help="such as 30M")
    box.add_argument(
        "--max-flops", type=amount, metavar="N", help="floating-point operations per recording, such as 5G"
    )
    box.add_argument("--leads", type=lead, nargs="+", default=[], metavar="LEAD", help="available ECG leads")
    box.add_argument(
        "--views",
        nargs="+",
        default=[],
        metavar="VIEW",
        help="available echo views, such as A4C, for models that state theirs",
    )
    box.add_argument(
        "--min-rate",
        type=amount,
        metavar="R",
        help="minimum measured rate of reading and encoding on a CPU, in recordings per second of CPU time of all threads and processes; in recordings per second on a GPU if all candidates were timed on the same card and one has no time on a CPU",
    )
    box.add_argument(
        "--worst-group",
        type=finite,
        metavar="X",
        help="required score of the worst validation subgroup, as shown in reports (80 for 80 %%); for errors, the maximum",
    )
    box.add_argument("--text", action="store_true", help="require a text encoder")
    box = parser.add_argument_group("operating point of binary tasks")
    box.add_argument(
        "--sensitivity",
        type=share,
        metavar="S",
        help="target sensitivity on validation patients (default: 0.9)",
    )
    box.add_argument(
        "--prevalence", type=rare, default=float("nan"), metavar="P", help="prevalence in the target population"
    )
    box.add_argument(
        "--guarded",
        action="store_true",
        help="choose the threshold whose one-sided 95 %% lower bound of the sensitivity reaches S on the validation patients",
    )
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the choice and return the exit code: 1 if no model remains."""
    from cardiobench.cli.output import print_problems
    from cardiobench.core.console import Console
    from cardiobench.extensions.choose import answer
    from cardiobench.extensions.choose.constraints import Constraints
    from cardiobench.extensions.choose.run import choose
    from cardiobench.report.noise import EXPLORATORY

    names = ("use", "unseen", "max_parameters", "max_flops", "min_rate", "worst_group", "text")
    limits = {name: getattr(arguments, name) for name in names}
    constraints = Constraints(
        **limits, leads=tuple(dict.fromkeys(arguments.leads)), views=tuple(dict.fromkeys(arguments.views))
    )
    choice, collection = choose(
        arguments.results,
        suite=arguments.suite,
        task=arguments.task,
        protocol=arguments.protocol,
        constraints=constraints,
        sensitivity=arguments.sensitivity,
        prevalence=arguments.prevalence,
        guarded=arguments.guarded,
    )
    console = Console(stdout_is_json=arguments.json)
    if arguments.json:
        console.json(answer.to_json(choice))
    print_problems(console, collection.problems)
    console.table("excluded", answer.EXCLUDED, answer.excluded_rows(choice))
    console.table(
        "no other candidate is better on the validation patients, the cheapest first",
        answer.SET,
        answer.set_rows(choice),
    )
    console.table("worse than one of these", answer.SET, answer.other_rows(choice))
    console.table("on test patients", answer.TEST, answer.test_rows(choice))
    console.table("compared on the same test patients", answer.TESTED, [one.cells for one in choice.tested])
    console.table("operating point, %, on test patients", answer.POINT, answer.point_rows(choice))
    if any(one.entries[task].result.verdict.exploratory for one in choice.candidates for task in choice.tasks):
        console.print(EXPLORATORY)
    console.remarks(choice.notes)
    console.print("")
    console.print(answer.paragraph(choice))
    return 0 if choice.candidates else 1
