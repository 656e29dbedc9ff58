"""Implement `cardiobench mirror`."""

import argparse
from pathlib import Path

HELP = "write metrics and datasets to a folder, so that their Hub names load offline"
GROUP = "share"
EXAMPLES = """\
  cardiobench mirror hub
  cd hub
  python -c "import evaluate; evaluate.load('cardiobench/f1_macro')"
  python -c "import datasets; datasets.load_dataset('cardiobench/phantom_ecg')"
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("folder", type=Path, metavar="DIR", help="output folder; DIR/cardiobench/<name>/ is written")
    parser.add_argument(
        "--datasets", nargs="+", metavar="NAME", help="datasets to write (default: all with data on this machine)"
    )
    parser.add_argument(
        "--twins",
        action="store_true",
        help="write a synthetic twin for each dataset without data on this machine: generated patients in the release's format",
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="folder with raw folders (default: $CARDIOBENCH_DATA)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Write the folder, print its content and return the exit code."""
    from datasets import disable_progress_bars

    from cardiobench.core.console import Console
    from cardiobench.extensions.mirror.mirror import mirror_datasets, mirror_metrics

    disable_progress_bars()
    console, absent = Console(), []
    for name, outcome in mirror_datasets(
        arguments.folder, arguments.datasets, data_dir=arguments.data_dir, twins=arguments.twins
    ):
        if not outcome.problem:
            kind = "synthetic twin, generated patients: " if outcome.twin else ""
            console.print(f"wrote {name}: {kind}datasets.load_dataset('cardiobench/{name}')")
        elif arguments.datasets:
            console.failure(name, outcome.problem)
        absent += [name] if outcome.problem else []
    metrics = mirror_metrics(arguments.folder)
    console.print(f"wrote {len(metrics)} metrics: evaluate.load('cardiobench/{metrics[0]}')")
    if absent:
        console.print(
            f"no data here: {', '.join(absent)}. Set CARDIOBENCH_DATA, or add --twins for generated patients."
        )
    console.print(f"These names load from the working directory {arguments.folder}.")
    return 1 if absent and arguments.datasets else 0
