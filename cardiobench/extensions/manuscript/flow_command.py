"""Implement `cardiobench flow`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import add_json

HELP = "participant flow of a task, from the release to the scored units"
GROUP = "results"
EXAMPLES = """\
Text on the screen; with --out, also a diagram as SVG and PNG.
  cardiobench flow --task camus/ef --data-dir /data/camus --results results --out flow
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    parser.add_argument("--task", required=True, metavar="TASK", help="task, such as camus/ef")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="raw or prepared data (default: $CARDIOBENCH_DATA)"
    )
    parser.add_argument(
        "--results",
        type=Path,
        nargs="+",
        default=[],
        metavar="RESULTS",
        help="folders of results, to state what was scored",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write text and diagram to this folder")
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the flow, write files if asked, and return the exit code."""
    from dataclasses import asdict

    from cardiobench.cli.output import print_files
    from cardiobench.core.console import Console
    from cardiobench.core.io import write_text
    from cardiobench.core.registry import look_up
    from cardiobench.data import catalog
    from cardiobench.data.open import open_dataset
    from cardiobench.extensions.manuscript.flow import lines, participant_flow
    from cardiobench.report.page.naming import anchor
    from cardiobench.report.plots.style import figure_style, save_figure
    from cardiobench.results.collect import collect

    (task,) = look_up([arguments.task], catalog.task)
    media = catalog.builder(task.dataset).has_recordings()
    dataset = open_dataset(task.dataset, arguments.data_dir, allow_missing=True, need_media=media)
    results = collect(arguments.results).results if arguments.results else []
    flow = participant_flow(dataset, task, [one for one in results if one.task == task.name])
    console = Console(stdout_is_json=arguments.json)
    if arguments.json:
        console.json(asdict(flow))
    for line in lines(flow):
        console.print(line)
    if arguments.out:
        stem = anchor("flow", task.name)
        files = [write_text("\n".join(lines(flow)) + "\n", arguments.out / f"{stem}.txt")]
        with figure_style():
            from cardiobench.extensions.manuscript.flow_figure import draw_flow

            save_figure(draw_flow(flow), arguments.out / f"{stem}.svg")
        files += [arguments.out / f"{stem}.svg", arguments.out / f"{stem}.png"]
        print_files(console, files, arguments.out)
    return 0
