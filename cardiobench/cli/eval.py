"""Command line of the runner: `accelerate launch -m cardiobench.eval --model org/name`."""

import argparse
import sys
from pathlib import Path

from cardiobench.cli.entry import guarded
from cardiobench.cli.file_permissions import check_permissions
from cardiobench.cli.flags import Parser, add_common, add_settings, add_short_help, given
from cardiobench.core.config import (
    RunConfig,
    ScoreConfig,
    flag_of,
    make_config,
    settings_of,
    to_yaml,
)
from cardiobench.core.config_file import merge, read_config
from cardiobench.core.errors import BadConfig
from cardiobench.core.extensions import contributions
from cardiobench.core.registry import check_names
from cardiobench.protocols import shown_protocols

EXAMPLES = """\
examples
  every task of the model's modality with real data on this machine, or prepared in ./cardiobench
      accelerate launch -m cardiobench.eval --model org/name
  two baselines on the bundled real ECGs and the generated hearts, without downloads
      accelerate launch -m cardiobench.eval --model cardiobench/pixel-motion cardiobench/ecg-morphology \\
          --tasks ptb_xl_sample/cd phantom_echo/ef
  a model in a local folder, one task, raw data in another folder
      accelerate launch -m cardiobench.eval --model ./my_model --tasks camus/ef --data-dir /data/camus
  two processes on a machine without GPUs
      accelerate launch --multi_gpu --num_processes 2 -m cardiobench.eval --model org/name
  score existing predictions (CSV or Parquet)
      cardiobench references tmed2/as --data-dir /data/tmed2 --out refs.csv
      python -m cardiobench.eval --predictions mine.csv --task tmed2/as --references refs.csv

  evaluate existing embeddings (Parquet, NPZ or CSV), without recordings or a network
      python -m cardiobench.eval --embeddings vectors.parquet --tasks ptb_xl/super --model-name lab/net \\
          --seen-in-pretraining none

running the same command again computes only what is missing
exit code 0 = done, 1 = something failed, or a model or task named by --model or --tasks has no result, 2 = wrong request
"""
SHORT = (
    *("list", "dry_run", "config", "models", "tasks", "suite", "protocols", "options", "data_dir", "allow_missing"),
    *("limit", "output_dir", "embeddings", "predictions", "task", "references"),
)
"""Flags in the output of `--help`."""
SHORT_EXAMPLES = """\
examples
  accelerate launch -m cardiobench.eval --model org/name
  cardiobench eval --model ./my_model --tasks camus/ef --data-dir /data/camus
  cardiobench eval --predictions mine.csv --task tmed2/as --references refs.csv

running the same command again computes only what is missing
exit code 0 = done, 1 = something failed, or a model or task named by --model or
--tasks has no result, 2 = wrong request
"""


def build_parser(prog: str = "python -m cardiobench.eval") -> Parser:
    """Return the parser of run flags, with one flag per field of `RunConfig` and `ScoreConfig`."""
    conditions = contributions("conditions")
    parser = Parser(
        prog=prog,
        description="Evaluate frozen cardiology foundation models: every score with its floor, 95 % interval, n and coverage.",
        epilog=f"{EXAMPLES}protocols: {', '.join(shown_protocols()[0])}\nconditions: {', '.join(conditions) or 'none'}\n",
        usage=f"{prog} --model ID [ID ...] [flags]",
    )
    add_short_help(parser, SHORT, SHORT_EXAMPLES)
    parser.add_argument("--list", action="store_true", help="list tasks and models, and the data on this machine")
    parser.add_argument("--config", type=Path, metavar="FILE", help="YAML file with settings; flags override it")
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print plan, time, disk space and missing data; exit code 0 if the run would start",
    )
    add_common(parser)
    parser.add_argument("--json", action="store_true", help="write results as JSON to standard output")
    parser.add_argument("--print-config", action="store_true", help="print all settings as YAML and exit")
    add_settings(parser, RunConfig, ScoreConfig)
    return parser


def read_settings(arguments: argparse.Namespace) -> RunConfig | ScoreConfig:
    """Return the validated settings from file and flags; flags take precedence.

    Raises:
        BadConfig: A value is invalid, settings are missing or contradictory, or the file contains settings that are
            only allowed on the command line.
    """
    flags = given(arguments, RunConfig) | given(arguments, ScoreConfig)
    stored = read_config(arguments.config) if arguments.config else {}
    check_names(f"setting of {arguments.config}", stored, {**settings_of(RunConfig), **settings_of(ScoreConfig)})
    values = merge(check_permissions(arguments.config, stored, flags), flags) if arguments.config else flags
    own = settings_of(ScoreConfig)
    if "predictions" in values or "task" in values or "references" in values:
        unused = [flag_of(RunConfig, name) for name in settings_of(RunConfig) if name in values and name not in own]
        if "task" in values and not {"predictions", "references"} & values.keys():
            raise BadConfig(f"--task requires --predictions FILE. For a run, use --tasks {values['task']}.")
        if unused:
            raise BadConfig(
                f"--predictions cannot be combined with {', '.join(unused)}, because no model is evaluated. Remove these flags."
                + (" Name the task of the predictions with --task." if "tasks" in values else "")
            )
        return make_config(ScoreConfig, values, flags=True)
    config = make_config(RunConfig, values, flags=True)
    if not config.models and config.embeddings is None and not (config.protocols or config.suite):
        raise BadConfig(
            "--model is missing (or --embeddings FILE --tasks TASK, --predictions FILE --task TASK, or --list)"
        )
    return config


def execute(arguments: argparse.Namespace) -> int:
    """Run the requested action and return the exit code."""
    if arguments.list:
        from cardiobench.cli.commands.list import print_list
        from cardiobench.core.console import Console

        print_list(Console(), getattr(arguments, "data_dir", None))
        return 0
    config = read_settings(arguments)
    if arguments.print_config:
        sys.stdout.write(to_yaml(config))
        return 0
    if isinstance(config, RunConfig):
        from cardiobench.runner.pretraining import ask_statement

        ask_statement(config)
    if arguments.dry_run and isinstance(config, RunConfig):
        return plan_and_print(config, as_json=arguments.json)
    return run_and_print(config, as_json=arguments.json)


def plan_and_print(config: RunConfig, *, as_json: bool = False) -> int:
    """Print the plan of a run and return the exit code."""
    from cardiobench.cli.output import print_dry_run
    from cardiobench.core.console import Console
    from cardiobench.runner.dry_run import dry_run

    console = Console(stdout_is_json=as_json)
    plan = dry_run(config, console)
    print_dry_run(plan, console)
    if as_json:
        console.json({"exit_code": plan.exit_code, **vars(plan)})
    return plan.exit_code


def run_and_print(config: RunConfig | ScoreConfig, *, as_json: bool = False) -> int:
    """Evaluate or score, print the outcome and return the exit code."""
    from cardiobench.core.console import Console

    console = Console(stdout_is_json=as_json)
    if isinstance(config, ScoreConfig):
        from cardiobench.cli.output import print_results
        from cardiobench.runner.external_predictions import score_file

        result, files = score_file(config)
        print_results(console, [result], place=files[0])
        if as_json:
            console.json(result.to_json())
        for file in files:
            console.print(f"wrote {file}")
        return 0
    from cardiobench.cli.output import print_summary
    from cardiobench.runner.run import run

    summary = run(config, console)
    print_summary(console, summary, config.output_dir)
    if as_json:
        console.json(summary.to_json())
    return summary.exit_code


def main(argv: list[str] | None = None) -> int:
    """Run `python -m cardiobench.eval`."""
    return guarded(build_parser, argv, execute)


if __name__ == "__main__":
    sys.exit(main())
