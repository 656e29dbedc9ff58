"""Write the list of failures and the report, and call the Hub and extensions."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from cardiobench.core.config import RunConfig, flag_of
from cardiobench.core.errors import BadConfig
from cardiobench.core.tables import write_csv
from cardiobench.data import catalog
from cardiobench.report.plots.draw import JOBS_PER_PROCESS
from cardiobench.runner.context import RunContext
from cardiobench.runner.hooks import run_hooks
from cardiobench.runner.workers import jobs_by_memory, n_jobs

FAILURE_COLUMNS = ["model", "dataset", "id", "reason"]


def check_after_run(config: RunConfig) -> None:
    """Let extensions validate settings before starting work.

    Raises:
        CardioBenchError: An extension rejects the settings, or no installed extension supports them.
    """
    if config.report_to and not run_hooks("after_run"):
        raise BadConfig(
            f"{flag_of(RunConfig, 'report_to')} {' '.join(config.report_to)}: no installed extension can report results. "
            "Install one, or leave it out."
        )
    for hooks in run_hooks():
        hooks.check(config)


def after_run(context: RunContext) -> None:
    """Pass new and cached results of the run to extensions on the main process."""
    for hooks in run_hooks():
        hooks.after_run(context.summary.results, context.config)


def finalize(context: RunContext) -> None:
    """Write the list of failures and the report, then push to the Hub if requested."""
    from cardiobench.report.markdown import write_markdown
    from cardiobench.results.collect import Collection, collect

    folder, summary = context.config.output_dir, context.summary
    if summary.failures:
        summary.files.append(write_failures(summary.failures, folder))
    collection = collect([folder]) if summary.results else Collection(())
    if summary.results:
        jobs = drawing_jobs(context.config, len({result.task for result in collection.results}))
        summary.files += write_markdown(collection, folder, processes=jobs)
    if context.config.push_to_hub:
        from cardiobench.hub.after_run import push_all

        known = [result for result in summary.results if result.task in catalog.list_tasks()]  # Exclude pooled tasks.
        failed = push_all(known, folder, context.console, collection.entries)
        summary.failures += [(model, "", "push", reason) for model, reason in failed]


def drawing_jobs(config: RunConfig, tasks: int) -> int:
    """Return the number of processes that draw the figures of tasks: those of `--jobs`, and others if they save time."""
    return max(1, min(n_jobs(config), jobs_by_memory(0), tasks if config.jobs else tasks // JOBS_PER_PROCESS))


def write_failures(failures: Sequence[tuple[str, str, str, str]], folder: Path) -> Path:
    """Write `failures.csv` with model, dataset, id (dense target, or "model") and reason."""
    return write_csv(pd.DataFrame(list(failures), columns=FAILURE_COLUMNS), folder / "failures.csv")
