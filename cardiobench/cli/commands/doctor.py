"""`cardiobench doctor`."""

import argparse
from pathlib import Path

HELP = "diagnose a model without running it: files, settings, tasks it can do"
EXAMPLES = """\
examples
  cardiobench doctor --model mkaichristensen/echo-clip
  cardiobench doctor --model echonet/EchoPrime --weights ~/downloads/model_data

exit code 0 = it loads whole, 2 = it does not (the last lines say why)
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("--model", required=True, metavar="ID", help="Hub id, local folder or weights file")
    parser.add_argument("--weights", type=Path, metavar="PATH", help="folder or file of a model that is not on the Hub")
    parser.add_argument("--revision", help="commit of the model on the Hub")
    parser.add_argument("--pooling", metavar="NAME", help="pooling of the network's tokens")
    parser.add_argument("--variant", metavar="NAME", help="variant of the preprocessing")
    parser.add_argument("--precision", choices=("auto", "fp32", "bf16"), default="auto")
    parser.add_argument("--trust-remote-code", action="store_true", help="let a model repository run its own code")
    parser.add_argument(
        "--preprocessing",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="how a model without a card takes a recording",
    )
    parser.add_argument("--json", action="store_true", help="machine-readable, on standard output")
    parser.add_argument("--quick", action="store_true", help="neither download nor read the weights")


def execute(arguments: argparse.Namespace) -> int:
    """Print it; returns the exit code."""
    from cardiobench.cli.doctor import COLUMNS, examine, print_diagnosis
    from cardiobench.core.config import RunConfig, make_config
    from cardiobench.core.console import Console

    diagnosis = examine(
        arguments.model,
        quick=arguments.quick,
        weights=arguments.weights,
        revision=arguments.revision,
        pooling=arguments.pooling,
        variant=arguments.variant,
        precision=arguments.precision,
        trust_remote_code=arguments.trust_remote_code,
        preprocessing=make_config(RunConfig, {"preprocessing": arguments.preprocessing}, flags=True).preprocessing,
    )
    if arguments.json:
        tasks = [dict(zip(COLUMNS, row, strict=True)) for row in diagnosis.answers]
        facts, problem = dict(diagnosis.facts), diagnosis.problem
        Console().json({"model": arguments.model, "facts": facts, "tasks": tasks, "problem": problem and str(problem)})
    else:
        print_diagnosis(diagnosis)
    if diagnosis.problem is not None:
        raise diagnosis.problem
    return 0
