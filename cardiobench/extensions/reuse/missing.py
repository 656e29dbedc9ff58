"""Implement `cardiobench missing`."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from cardiobench.core.config import RunConfig, make_config

if TYPE_CHECKING:
    from cardiobench.core.console import Console
    from cardiobench.runner.dry_run import DryRun

HELP = "list results missing from a suite, with their estimated cost"
GROUP = "run"
EXAMPLES = """\
examples
  cardiobench missing --suite cardiobench_ecg_v2 --model cardiobench/minirocket --reuse org/cardiobench-results --reuse-from alice
No files are written. The cost is the encoding time, measured on one recording per dataset, and the disk space.
Results that cannot be computed here, because their data is not here, count as missing and are listed apart, without a cost.
exit code 0: all missing results are listed, 1: a model could not be loaded or no task of the suite applies to it, or the disk is too small
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("--suite", required=True, metavar="NAME", help="suite, such as cardiobench_ecg_v2")
    parser.add_argument(
        "--model", nargs="+", metavar="ID", help="models (default: those with results of the suite below --output-dir)"
    )
    parser.add_argument("--reuse", metavar="ORG/NAME", help="dataset of results whose verified results also count")
    parser.add_argument("--reuse-from", nargs="+", default=(), metavar="OWNER", help="owners whose results count")
    parser.add_argument("--weights", type=Path, metavar="PATH", help="folder or file of a model that is not on the Hub")
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="raw or prepared data (default: the same as for `cardiobench eval`)",
    )
    parser.add_argument("--output-dir", type=Path, default=Path("results"), metavar="DIR", help="results of runs")
    parser.add_argument(
        "--cache-dir", type=Path, metavar="DIR", help="embeddings (default: the same as for `cardiobench eval`)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print missing results with their cost and return the exit code."""
    from cardiobench.core.console import Console
    from cardiobench.runner.dry_run import dry_run

    models = arguments.model or models_of(arguments.suite, arguments.output_dir)
    names = ("suite", "reuse", "reuse_from", "weights", "data_dir", "output_dir", "cache_dir")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    console = Console()
    config = make_config(RunConfig, {**given, "models": tuple(models)}, flags=True)
    plan = dry_run(config, console, count_absent=True)
    print_holes(plan, console)
    return plan.exit_code


def models_of(suite: str, folder: Path) -> list[str]:
    """Return the models with results of a suite in a folder.

    Raises:
        UnknownName: There is no such suite.
        BadConfig: There are no results.
    """
    from cardiobench.core.errors import BadConfig
    from cardiobench.results.collect import collect_by_suite
    from cardiobench.scoring.suites import load_suite

    load_suite(suite)
    found = collect_by_suite([folder]).get(suite) if folder.is_dir() else None
    if found is None or not found.entries:
        raise BadConfig(f"there is no result of the suite {suite} below {folder}. Name a model: --model ID.")
    return sorted({str(entry.result.model["name"]) for entry in found.entries})


def print_holes(plan: "DryRun", console: "Console") -> None:
    """Print missing cells, and encoding costs by model and dataset."""
    from cardiobench.runner.eta import format_seconds

    holes = [(hole["model"], hole["task"], hole["protocol"]) for hole in plan.holes]
    of_dataset = [(model, task.partition("/")[0]) for model, task, _ in holes]
    console.table("missing", ("model", "task", "protocol"), holes)
    priced = [
        (
            row["model"],
            row["dataset"],
            str(count),
            str(row["to_encode"]),
            f"about {format_seconds(row['seconds'])}",
            f"{row['bytes'] / 1e6:.1f} MB",
        )
        for row in plan.rows
        if (count := sum(one == (row["model"], row["dataset"]) for one in of_dataset))
    ]
    console.table("price", ("model", "dataset", "missing", "to encode", "time for encoding", "disk"), priced)
    absent = [(hole["model"], hole["task"], hole["protocol"]) for hole in plan.absent_holes]
    console.table("missing, and the data is not here", ("model", "task", "protocol"), absent)
    console.remarks(plan.problems)
    console.remarks(f"{name} has no cost estimate: {reason}" for name, reason in plan.absent.items())
    outlook = "; part of the runs would fail" if plan.problems else ""
    apart = (
        f": {len(holes)} can be computed here, {len(absent)} cannot, because their data is not here" if absent else ""
    )
    console.print(f"{_counted(len(holes) + len(absent))} missing{apart}{outlook}; nothing was written")


def _counted(count: int) -> str:
    return f"{count} {'result is' if count == 1 else 'results are'}"
