"""`cardiobench compare`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import SEED, whole_number
from cardiobench.core.config import RESAMPLES
from cardiobench.core.setting import MOST_RESAMPLES

HELP = "compare the models of a results folder: pairs, ranks, equivalence"
EXAMPLES = """\
Every pair of models on every task and protocol that both answered: paired differences on the same patients, 95 %
intervals, p-values corrected for all tasks of the suite, run or not, and ranks.
  cardiobench compare results
  cardiobench compare results --tasks camus/ef --protocols probe --csv pairs.csv
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument("results", type=Path, nargs="?", default=Path("results"), metavar="RESULTS")
    parser.add_argument("--tasks", nargs="+", default=[], metavar="TASK", help="tasks or datasets (default: all)")
    parser.add_argument("--protocols", nargs="+", default=[], metavar="NAME", help="such as probe (default: all)")
    parser.add_argument(
        "--resamples",
        type=whole_number(1, MOST_RESAMPLES),
        default=RESAMPLES,
        metavar="B",
        help="minimum number of bootstrap resamples (default: %(default)s)",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the bootstrap (default: 0)")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the pairs too, every digit kept")
    parser.add_argument("--json", action="store_true", help="machine-readable, on standard output")


def execute(arguments: argparse.Namespace) -> int:
    """Print ranks and pairs; returns the exit code."""
    from cardiobench.cli.output import print_problems
    from cardiobench.core.console import Console
    from cardiobench.core.errors import MissingData
    from cardiobench.core.tables import write_csv
    from cardiobench.report import ranks
    from cardiobench.results.collect import collect
    from cardiobench.runner.plan import resolve_tasks

    wanted = {task.name for task in resolve_tasks(arguments.tasks)}
    console, collection = Console(stdout_is_json=arguments.json), collect([arguments.results])
    print_problems(console, collection.problems)
    entries = [
        entry
        for entry in collection.entries
        if entry.result.task in wanted and (not arguments.protocols or entry.result.protocol in arguments.protocols)
    ]
    pairs, left_out = ranks.compare_all_pairs(entries, resamples=arguments.resamples, seed=arguments.seed)
    if not pairs:
        raise MissingData(
            f"no two models in {arguments.results} answered the same task by the same protocol. Evaluate another "
            "model into the same folder: python -m cardiobench.eval --model A B --output-dir ..."
        )
    if arguments.json:
        console.json({"pairs": ranks.pair_table(pairs).to_dict("records"), "left_out": left_out})
    console.table("pairs", ranks.PAIR_COLUMNS, ranks.pair_rows(pairs))
    console.table("ranks", ranks.RANK_COLUMNS, ranks.rank_rows(pairs))
    for sentence in left_out:
        console.print(f"! {sentence}")
    if arguments.csv:
        console.print(f"wrote {write_csv(ranks.pair_table(pairs), arguments.csv)}")
    return 0
