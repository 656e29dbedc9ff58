"""Implement `cardiobench sites`."""

import argparse
from pathlib import Path

from cardiobench.cli.flags import add_json, add_results

HELP = "scores of each site, their random-effects summary and prediction interval"
GROUP = "results"
EXAMPLES = """\
Sites are values of a column of the dataset, or datasets with the same target.
  cardiobench sites results --task chapman_ningbo/af --site-column hospital --out sites
  cardiobench sites results --target cd
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add command-line arguments."""
    add_results(parser)
    parser.add_argument("--task", default="", metavar="TASK", help="task whose patients come from several sites")
    parser.add_argument(
        "--site-column", default="", metavar="COLUMN", help="column of the dataset that names the site of a patient"
    )
    parser.add_argument("--target", default="", metavar="NAME", help="target of several datasets, which are the sites")
    parser.add_argument("--protocol", default="", metavar="NAME", help="protocol with its variant (default: all)")
    parser.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="data with the column (default: $CARDIOBENCH_DATA)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="also write a table and forest plots to this folder")
    add_json(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print the sites, write files if asked, and return the exit code."""
    import pandas as pd

    from cardiobench.cli.output import print_files, print_problems
    from cardiobench.core.console import Console
    from cardiobench.core.errors import BadConfig
    from cardiobench.core.tables import write_csv
    from cardiobench.extensions.manuscript.sites import COLUMNS, EXPLAINED, of_column, of_target
    from cardiobench.report.page.naming import anchor
    from cardiobench.report.plots.style import figure_style, save_figure
    from cardiobench.scoring.score import GENERATED

    if bool(arguments.target) == bool(arguments.task) or bool(arguments.task) != bool(arguments.site_column):
        raise BadConfig("give either --task TASK with --site-column COLUMN, or --target NAME.")
    folders = arguments.results
    if arguments.target:
        found, problems = of_target(folders, arguments.target, arguments.protocol)
    else:
        found, problems = of_column(
            folders, arguments.task, arguments.site_column, arguments.data_dir, arguments.protocol
        )
    console = Console(stdout_is_json=arguments.json)
    if arguments.json:
        console.json([
            {
                "model": one.model,
                "protocol": one.protocol,
                "sites": {name: vars(estimate) for name, estimate in one.sites.items()},
                "left_out": one.left_out,
                "summary": one.summary and one.summary._asdict(),
                "reason": one.reason,
            }
            for one in found
        ])  # fmt: skip
    print_problems(console, problems)
    rows = [row for one in found for row in one.rows()]
    console.table(arguments.target or f"{arguments.task} by {arguments.site_column}", COLUMNS, rows)
    console.remarks(dict.fromkeys(f"{one.model}, {one.protocol}: {one.reason}" for one in found if one.reason))
    if any(one.generated for one in found):
        console.remarks([GENERATED])
    console.print(EXPLAINED)
    if arguments.out:
        files = [write_csv(pd.DataFrame(rows, columns=list(COLUMNS)), arguments.out / "sites.csv")]
        with figure_style():
            from cardiobench.extensions.manuscript.forest import draw_forest

            for one in found:
                path = arguments.out / f"{anchor('forest', f'{one.protocol} {one.model}')}.svg"
                save_figure(draw_forest(one), path, one.caption)
                files += [path, path.with_suffix(".png")]
        print_files(console, files, arguments.out)
    return 0
