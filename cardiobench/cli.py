"""The `cardiobench` command: parses flags and calls functions."""

import argparse
import sys
from pathlib import Path

from cardiobench import eval as evaluation

DESCRIPTION = (
    "CardioBench: how good are frozen cardiology foundation models, on echo and ECG? No score stands alone here."
)


def build_parser() -> argparse.ArgumentParser:
    """All commands."""
    parser = argparse.ArgumentParser(prog="cardiobench", description=DESCRIPTION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    run = evaluation.build_parser("cardiobench eval")
    commands.add_parser(
        "eval",
        parents=[run],
        add_help=False,
        help="evaluate models, or score a file of predictions",
        description=run.description,
        epilog=run.epilog,
        formatter_class=run.formatter_class,
    )

    demo = commands.add_parser("demo", help="the baselines on bundled and generated data, from embedding to report")
    demo.add_argument("--output-dir", type=Path, default=Path("results"), metavar="DIR")

    listing = commands.add_parser("list", help="datasets, tasks and models, and what data is here")
    listing.add_argument("--data-dir", type=Path, metavar="DIR")
    listing.add_argument("--models", action="store_true", help="models only")

    references = commands.add_parser("references", help="write the truth of a task, for scoring predictions elsewhere")
    references.add_argument("task", metavar="TASK")
    references.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    references.add_argument("--out", type=Path, required=True, metavar="FILE")

    twin = commands.add_parser("phantom", help="write a synthetic twin of a dataset in its own raw layout")
    twin.add_argument("dataset", metavar="DATASET")
    twin.add_argument("--out", type=Path, required=True, metavar="DIR")
    twin.add_argument("--patients", type=int, default=20, metavar="N")
    twin.add_argument("--seed", type=int, default=0)

    audit = commands.add_parser("audit", help="what to know of a copy of a dataset: counts, crossings, doubles, gaps")
    audit.add_argument("dataset", metavar="DATASET")
    audit.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    audit.add_argument("--no-media", action="store_true", help="do not read the recordings to find doubles")

    prepare = commands.add_parser("prepare", help="build a dataset as a folder that datasets.load_dataset reads")
    prepare.add_argument("dataset", metavar="DATASET")
    prepare.add_argument("--data-dir", type=Path, metavar="DIR", help="raw folder (default: $CARDIOBENCH_DATA)")
    prepare.add_argument("--out", type=Path, required=True, metavar="DIR", help="DIR/cardiobench/<dataset>/ is written")
    prepare.add_argument("--allow-missing", action="store_true", help="go on with an incomplete copy")
    prepare.add_argument("--num-proc", type=int, metavar="N", help="processes that read recordings")

    report = commands.add_parser("report", help="one page of the results in a folder")
    report.add_argument("results", type=Path, nargs="?", default=Path("results"), metavar="RESULTS")
    report.add_argument("--out", type=Path, metavar="DIR", help="default: the results folder itself")
    return parser


def execute(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Call the function behind a command; returns the exit code."""
    if arguments.command == "eval":
        return evaluation.execute(parser, arguments)
    if arguments.command == "demo":
        from cardiobench.demo import demo

        return demo(arguments.output_dir)
    if arguments.command == "list":
        from cardiobench.report.listing import print_listing

        print_listing(arguments.data_dir, datasets=not arguments.models)
    elif arguments.command == "references":
        from cardiobench.foreign import write_task_references

        write_task_references(arguments.task, arguments.data_dir, arguments.out)
    elif arguments.command == "phantom":
        from cardiobench.data.twin import write_twin

        write_twin(arguments.dataset, arguments.out, patients=arguments.patients, seed=arguments.seed)
    elif arguments.command == "audit":
        from cardiobench.data.audit import print_audit

        print_audit(arguments.dataset, arguments.data_dir, media=not arguments.no_media)
    elif arguments.command == "prepare":
        from cardiobench.data.prepare import prepare

        folder = prepare(
            arguments.dataset,
            arguments.data_dir,
            arguments.out,
            allow_missing=arguments.allow_missing,
            num_proc=arguments.num_proc,
        )
        sys.stdout.write(
            f"wrote {folder}\nfrom {arguments.out}: datasets.load_dataset('cardiobench/{arguments.dataset}')\n"
        )
    elif arguments.command == "report":
        from cardiobench.report.markdown import report_folder

        report_folder(arguments.results, arguments.out or arguments.results)
    return 0


def main(argv: list[str] | None = None) -> int:
    """Entry point of `cardiobench`."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    return evaluation.guarded(execute, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
