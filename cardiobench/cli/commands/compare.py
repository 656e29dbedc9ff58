"""Implement `cardiobench compare`."""

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.cli.flags import SEED, add_json, whole_number
from cardiobench.core.config import RESAMPLES
from cardiobench.core.setting import MOST_RESAMPLES

if TYPE_CHECKING:
    from cardiobench.core.errors import CardioBenchError
    from cardiobench.results.collect import ResultEntry

HELP = "compare models by their results, files of predictions, or both"
GROUP = "results"
EXAMPLES = """\
Compare all pairs of models on every task and protocol with results of both. The output contains paired differences on
the same patients with 95 % intervals, p-values corrected for all pairs and all tasks of the suite (run or not), and places over all
tasks. Predictions from elsewhere are compared with every model on the same units and ranked separately.
  cardiobench compare results
  cardiobench compare results --tasks camus/ef --protocols probe --csv pairs.csv
Files of predictions (CSV or Parquet), with references from `cardiobench references`:
  cardiobench compare mine.csv theirs.csv --task camus/ef --references refs.csv
  cardiobench compare mine.csv results --task camus/ef --references refs.csv
"""
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".pq")
"""Suffixes of prediction files."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument(
        "sources",
        type=Path,
        nargs="*",
        metavar="SOURCE",
        help="folder of results, JSON file of one result, or file of predictions; several allowed (default: results)",
    )
    parser.add_argument("--task", default="", metavar="TASK", help="task of the files of predictions")
    parser.add_argument(
        "--references",
        type=Path,
        metavar="FILE",
        help="references from `cardiobench references` (default: tables below --data-dir)",
    )
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    parser.add_argument(
        "--allow-missing", action="store_true", help="compare incomplete files; missing answers count as wrong"
    )
    parser.add_argument("--tasks", nargs="+", default=[], metavar="TASK", help="tasks or datasets (default: all)")
    parser.add_argument(
        "--protocols", nargs="+", default=[], metavar="NAME", help="protocols such as probe (default: all)"
    )
    parser.add_argument(
        "--resamples",
        type=whole_number(1, MOST_RESAMPLES),
        default=RESAMPLES,
        metavar="B",
        help="minimum number of bootstrap resamples (default: %(default)s)",
    )
    parser.add_argument("--seed", type=SEED, default=0, help="seed of the bootstrap (default: 0)")
    parser.add_argument(
        "--csv", type=Path, metavar="FILE", help="also write unrounded values of all pairs to this CSV file"
    )
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print ranks and pairs, and return the exit code."""
    from cardiobench.cli.output import print_problems
    from cardiobench.core.console import Console
    from cardiobench.core.tables import write_csv
    from cardiobench.report import ranks
    from cardiobench.report.noise import false_rankings
    from cardiobench.results.collect import Collection, collect
    from cardiobench.runner.external_predictions import read_files
    from cardiobench.runner.plan import resolve_tasks

    stored, files = split_sources(arguments)
    console = Console(stdout_is_json=arguments.json)
    collection = collect(stored) if stored else Collection(())
    print_problems(console, collection.problems)
    entries = chosen_entries(arguments, stored, collection.entries)
    predictions = []
    if files:
        predictions = read_files(
            files, arguments.task, arguments.references, arguments.data_dir, allow_missing=arguments.allow_missing
        )
    pairs, left_out, rankings = ranks.compare_all_pairs(
        entries,
        predictions,
        tasks=[task.name for task in resolve_tasks(arguments.tasks)] if arguments.tasks else (),
        resamples=arguments.resamples,
        seed=arguments.seed,
    )
    if not pairs:
        raise nothing_to_compare(arguments, left_out, {entry.result.task for entry in collection.entries})
    if arguments.json:
        console.json({"pairs": ranks.pair_table(pairs).to_dict("records"), "left_out": left_out})
    console.table("pairs", ranks.PAIR_COLUMNS, ranks.pair_rows(pairs))
    console.table("places", ranks.RANK_COLUMNS, ranks.rank_rows(rankings))
    console.print(ranks.CORRECTION)
    console.print(ranks.PLACES)
    console.print(false_rankings(rankings))
    console.remarks((*left_out, *ranks.rank_notes(rankings)))
    if arguments.csv:
        console.print(f"wrote {write_csv(ranks.pair_table(pairs), arguments.csv)}")
    return 0


def split_sources(arguments: argparse.Namespace) -> tuple[list[Path], list[Path]]:
    """Return result folders and files, and prediction files.

    Raises:
        BadConfig: Prediction files are given without their task, or a task without prediction files.
        MissingData: A file does not exist.
    """
    from cardiobench.core.errors import BadConfig, MissingData
    from cardiobench.report.contests import result_file

    sources = arguments.sources or [Path("results")]
    files = [one for one in sources if one.suffix.lower() in TABLES and not one.is_dir() and result_file(one) is None]
    stored = [result_file(one) or one for one in sources if one not in files]
    for one in files:
        if not one.is_file():
            raise MissingData(f"there is no file {one}. Check the path.")
    if files and not arguments.task:
        raise BadConfig(f"--task is missing: give the task of {files[0]}, such as ptb_xl/cd.")
    if not files and (arguments.task or arguments.references):
        raise BadConfig("--task and --references need files of predictions. To select tasks of results, use --tasks.")
    return stored, files


def chosen_entries(
    arguments: argparse.Namespace, named: Sequence[Path], entries: "Sequence[ResultEntry]"
) -> "list[ResultEntry]":
    """Return the results of the selected tasks and protocols.

    Args:
        arguments: Command-line arguments.
        named: Folders and files given by the user.
        entries: Results in these folders and files.

    Raises:
        BadPredictions: A given result file and the prediction files belong to different tasks.
    """
    from cardiobench.core.errors import BadPredictions
    from cardiobench.runner.plan import resolve_tasks

    for entry in entries:
        if arguments.task and entry.path in named and entry.result.task != arguments.task:
            raise BadPredictions(
                f"{entry.path} is a result for {entry.result.task}, but --task is {arguments.task}. Compare results for the same task."
            )
    wanted = {arguments.task} if arguments.task else {task.name for task in resolve_tasks(arguments.tasks)}
    return [
        entry
        for entry in entries
        if entry.result.task in wanted and (not arguments.protocols or entry.result.protocol in arguments.protocols)
    ]


def nothing_to_compare(
    arguments: argparse.Namespace, left_out: "Sequence[str]", tasks: "Collection[str]"
) -> "CardioBenchError":
    """Return the error for a call without two comparable models, given the tasks of all results that were read."""
    from cardiobench.core.command import command
    from cardiobench.core.errors import BadPredictions, MissingData, first_n
    from cardiobench.data import catalog

    if left_out:
        return BadPredictions("nothing can be compared:\n  " + "\n  ".join(left_out))
    if arguments.task:
        return MissingData(f"there is only one result for {arguments.task}. Give a second file or folder.")
    unknown = sorted(task for task in tasks if task.partition("/")[0] not in catalog.list_datasets())
    if unknown and not arguments.tasks:
        return MissingData(
            f"the results are of {first_n(unknown)}, whose dataset is not known here. Give the folder of your datasets with "
            "--datasets-dir."
        )
    into = next((one for one in reversed(arguments.sources) if not one.is_file()), "results")
    again = command("eval", "--model", "A", "B", "--output-dir", into)
    return MissingData(
        f"no two models in {' '.join(map(str, arguments.sources or ['results']))} have results for the same task and protocol. "
        f"Evaluate another model into the same folder: {again}"
    )
