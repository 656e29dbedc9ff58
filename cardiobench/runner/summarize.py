"""Summarize a run: list of failures, report, push to the Hub, and functions of extensions."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cardiobench.core import extensions
from cardiobench.core.config import RunConfig, flag_of
from cardiobench.core.errors import BadConfig
from cardiobench.core.tables import write_csv
from cardiobench.data import catalog
from cardiobench.runner.context import RunContext

FAILURE_COLUMNS = ["model", "dataset", "id", "reason"]


def check_after_run(config: RunConfig) -> None:
    """Let extensions refuse settings before any work is done.

    Raises:
        CardioBenchError: Settings that an extension refuses, or that no installed extension serves.
    """
    modules = extensions.hooks("after_run")
    if config.report_to and not modules:
        raise BadConfig(
            f"{flag_of(RunConfig, 'report_to')} {' '.join(config.report_to)}: no installed extension can report results. "
            "Install one, or leave it out."
        )
    for module in modules:
        module.check(config)


def after_run(context: RunContext) -> None:
    """Hand the results of the run, new and cached, to extensions; on the main process."""
    for module in extensions.hooks("after_run"):
        module.execute(context.summary.results, context.config)


def finalize(context: RunContext) -> None:
    """Write the list of failures and the report, then push to the Hub where it was requested."""
    from cardiobench.report.markdown import write_markdown
    from cardiobench.results.collect import collect

    folder, summary = context.config.output_dir, context.summary
    if summary.failures:
        summary.files.append(write_failures(summary.failures, folder))
    if summary.results:
        summary.files += write_markdown(collect([folder]), folder)
    if context.config.push_to_hub:
        from cardiobench.hub.after_run import push_all

        known = [result for result in summary.results if result.task in catalog.list_tasks()]  # No pooled tasks.
        failed = push_all(known, folder, context.console)
        summary.failures += [(model, "", "push", reason) for model, reason in failed]


def write_failures(failures: Sequence[tuple[str, str, str, str]], folder: Path) -> Path:
    """Write the failures of this run as `failures.csv`: model, dataset, id (target of a dense task, or "model"), reason."""
    return write_csv(pd.DataFrame(list(failures), columns=FAILURE_COLUMNS), folder / "failures.csv")
