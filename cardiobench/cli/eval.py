"""The runner's command line: `accelerate launch -m cardiobench.eval --model org/name`."""

import argparse
import errno
import sys
from pathlib import Path

from cardiobench.core.config import RunConfig, default_cache
from cardiobench.core.errors import CardioBenchError
from cardiobench.protocols import DEFAULT, list_protocols
from cardiobench.protocols.options import read_options

# A full, read-only or forbidden disk, wherever it shows: the user's to mend, not a defect.
DISK_ERRORS = {errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.ENOTDIR}

EXAMPLES = """\
examples
  every task of the model's modality that has data here
      accelerate launch -m cardiobench.eval --model org/name
  two baselines on the bundled real ECGs and the generated hearts; nothing to download
      accelerate launch -m cardiobench.eval --model cardiobench/pixel-motion cardiobench/ecg-morphology \\
          --tasks ptb_xl_sample/cd phantom_echo/ef
  a model in a local folder, one task, raw data in a folder of its own
      accelerate launch -m cardiobench.eval --model ./my_model --tasks camus/ef --data-dir /data/camus
  two processes on a machine without GPUs
      accelerate launch --multi_gpu --num_processes 2 -m cardiobench.eval --model org/name
  only score predictions from elsewhere (CSV or Parquet)
      cardiobench references tmed2/as --data-dir /data/tmed2 --out refs.csv
      python -m cardiobench.eval --predictions mine.csv --task tmed2/as --references refs.csv

running the same line again finishes what is missing; exit code 0 = done, 1 = something failed, 2 = wrong request
"""


def build_parser(prog: str = "python -m cardiobench.eval") -> argparse.ArgumentParser:
    """The flags; each is a field of `RunConfig`."""
    parser = argparse.ArgumentParser(
        prog=prog,
        description="Evaluate frozen cardiology foundation models: every score with its floor, 95 % interval, n and coverage.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_argument_group("what to evaluate")
    what.add_argument(
        "--model",
        nargs="+",
        action="extend",
        default=[],
        metavar="ID",
        help="Hub id, local folder or weights file; several allowed",
    )
    what.add_argument(
        "--tasks",
        nargs="+",
        action="extend",
        default=[],
        metavar="TASK",
        help="such as camus/ef, or a dataset for all its tasks (default: all that have data here)",
    )
    what.add_argument(
        "--protocols",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help=f"{', '.join(list_protocols())}; all (default: {', '.join(DEFAULT)})",
    )
    what.add_argument(
        "--prompts", type=Path, metavar="FILE", help="JSON with another prompt set than the dataset's own"
    )
    what.add_argument(
        "--profile",
        choices=("default", "paper"),
        default="default",
        help="paper: the published recipes, where a protocol has one (default: default)",
    )
    what.add_argument(
        "--pooling",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME",
        help="mean, cls, last, max: how a model's tokens become one vector; several allowed (default: the model's own)",
    )
    what.add_argument(
        "--share",
        type=_share,
        default=0.2,
        metavar="P",
        help="of the numeric prompts that count as likest in zero-shot (default: 0.2)",
    )
    what.add_argument(
        "--stress-patients",
        type=_not_negative,
        default=30,
        metavar="N",
        help="test patients whose recordings the stress protocol disturbs; 0 = all (default: 30)",
    )
    what.add_argument(
        "--option",
        nargs="+",
        action="extend",
        default=[],
        metavar="PROTOCOL.OPTION=VALUE",
        help="any other option of a protocol, such as representation.refit=true or cross_validation.search=flat",
    )
    what.add_argument("--revision", help="commit of the model on the Hub")
    what.add_argument("--weights", type=Path, metavar="PATH", help="folder or file of a model that is not on the Hub")
    what.add_argument(
        "--variant", metavar="NAME", help="of the preprocessing; `cardiobench doctor --model ID` lists them"
    )
    what.add_argument("--trust-remote-code", action="store_true", help="let a model repository run its own code")
    what.add_argument("--list", action="store_true", help="list tasks and models, and what data is here")

    data = parser.add_argument_group("data")
    data.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="raw folder of the dataset, or a folder with one per dataset name (default: $CARDIOBENCH_DATA)",
    )
    data.add_argument(
        "--allow-missing", action="store_true", help="go on with an incomplete copy; the coverage is stamped"
    )
    data.add_argument(
        "--limit", type=_positive, metavar="N", help="only the first N patients of each split, to try things out"
    )

    run = parser.add_argument_group("how to run")
    run.add_argument(
        "--output-dir",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="results, predictions and report (default: results)",
    )
    run.add_argument(
        "--cache-dir", type=Path, default=default_cache(), metavar="DIR", help="embeddings (default: %(default)s)"
    )
    run.add_argument(
        "--batch-size", type=_positive, default=8, metavar="N", help="recordings encoded together (default: 8)"
    )
    run.add_argument(
        "--workers",
        type=_not_negative,
        metavar="N",
        help="decoding processes for each encoding process (default: by cores)",
    )
    run.add_argument(
        "--precision",
        choices=("auto", "fp32", "bf16"),
        default="auto",
        help="of the network's arithmetic (default: auto, bf16 for echo networks on a GPU)",
    )
    run.add_argument("--seed", type=int, default=0, help="of the bootstrap (default: 0)")
    run.add_argument("--resamples", type=_positive, default=1000, metavar="B", help="of the bootstrap (default: 1000)")
    run.add_argument("--overwrite", action="store_true", help="score again what has a result already")
    run.add_argument(
        "--push-to-hub",
        action="store_true",
        help="write the results to each model's card on the Hub (a pull request where it is not yours)",
    )

    folds = parser.add_argument_group("cross-validation")
    folds.add_argument(
        "--sizes", nargs="+", action="extend", default=[], metavar="SIZE", help="XS, S, M, L (default: all there are)"
    )
    folds.add_argument(
        "--classifiers", nargs="+", action="extend", default=[], metavar="NAME", help="one or more (default: all five)"
    )
    folds.add_argument(
        "--grids", type=Path, metavar="FILE", help="JSON with other grids: classifier -> parameter -> values"
    )
    folds.add_argument(
        "--backend", default="loky", metavar="WHERE", help="loky, dask=tcp://HOST:PORT or ray (default: loky)"
    )
    folds.add_argument("--jobs", type=_positive, metavar="N", help="cells at a time (default: one a core)")

    foreign = parser.add_argument_group("score predictions from elsewhere")
    foreign.add_argument(
        "--predictions",
        type=Path,
        metavar="FILE",
        help="CSV or Parquet with an id and a prediction for every test unit",
    )
    foreign.add_argument("--task", metavar="TASK", help="the task that they answer")
    foreign.add_argument(
        "--references",
        type=Path,
        metavar="FILE",
        help="made by `cardiobench references` (default: read from --data-dir)",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected 1 or more, got {text}")
    return number


def _not_negative(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"expected 0 or more, got {text}")
    return number


def _share(text: str) -> float:
    number = float(text)
    if not 0 < number <= 1:
        raise argparse.ArgumentTypeError(f"expected a share above 0 and at most 1, got {text}")
    return number


def config_from(arguments: argparse.Namespace) -> RunConfig:
    """The run that the flags ask for."""
    return RunConfig(
        models=tuple(arguments.model),
        tasks=tuple(arguments.tasks),
        protocols=tuple(arguments.protocols),
        data_dir=arguments.data_dir,
        output_dir=arguments.output_dir,
        cache_dir=arguments.cache_dir,
        allow_missing=arguments.allow_missing,
        limit=arguments.limit,
        prompts=arguments.prompts,
        revision=arguments.revision,
        weights=arguments.weights,
        variant=arguments.variant,
        precision=arguments.precision,
        trust_remote_code=arguments.trust_remote_code,
        batch_size=arguments.batch_size,
        workers=arguments.workers,
        seed=arguments.seed,
        resamples=arguments.resamples,
        overwrite=arguments.overwrite,
        push_to_hub=arguments.push_to_hub,
        profile=arguments.profile,
        sizes=tuple(arguments.sizes),
        classifiers=tuple(arguments.classifiers),
        grids=arguments.grids,
        poolings=tuple(arguments.pooling),
        backend=arguments.backend,
        jobs=arguments.jobs,
        stress_patients=arguments.stress_patients,
        options=read_options(arguments.option),
        share=arguments.share,
    )


def execute(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> int:
    """Do what the flags say; returns the exit code."""
    from cardiobench.core.console import Console

    if arguments.list:
        from cardiobench.cli.listing import print_listing

        print_listing(arguments.data_dir)
        return 0
    if arguments.predictions:
        if not arguments.task:
            parser.error("--predictions needs --task, the task that the file answers")
        from cardiobench.cli.output import print_results
        from cardiobench.runner.external_predictions import score_file

        result, files = score_file(arguments.predictions, arguments.task, arguments.references, config_from(arguments))
        console = Console()
        print_results(console, [result])
        for file in files:
            console.print(f"wrote {file}")
        return 0
    if not arguments.model:
        parser.error("--model is missing (or --predictions FILE --task TASK, or --list)")
    if arguments.weights and len(arguments.model) != 1:
        parser.error("--weights are those of one model: give one --model")
    from cardiobench.cli.output import print_summary
    from cardiobench.runner.run import run

    config, console = config_from(arguments), Console()
    summary = run(config, console)
    print_summary(console, summary, config.output_dir)
    return summary.exit_code


def guarded(command, *arguments) -> int:
    """Run a command; a user's mistake is one message on stderr and an exit code, not a traceback."""
    try:
        return command(*arguments)
    except CardioBenchError as error:
        # One voice, however many processes: the others fail the same way.
        import os

        if os.environ.get("RANK", "0") == "0":
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return error.exit_code
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        sys.stderr.write(
            f"UnwritableOutput: {error.filename or 'the disk'}: {error.strerror}. What is finished is kept.\n"
        )
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what is finished is kept, run the same line again to go on\n")
        return 130


def main(argv: list[str] | None = None) -> int:
    """Entry point of `python -m cardiobench.eval`."""
    parser = build_parser()
    arguments = parser.parse_args(argv)
    return guarded(execute, parser, arguments)


if __name__ == "__main__":
    sys.exit(main())
