"""Summarize a run: the list of failures, the report, and the push to the Hub."""

from cardiobench.data import catalog
from cardiobench.runner.context import RunContext


def finalize(context: RunContext) -> None:
    """Write the list of failures and the report, then push to the Hub where it was asked for."""
    from cardiobench.report.markdown import write_markdown
    from cardiobench.results.collect import collect
    from cardiobench.results.failures import write_failures

    folder, summary = context.config.output_dir, context.summary
    if summary.failures:
        summary.files.append(write_failures(summary.failures, folder))
    if summary.results:
        summary.files += write_markdown(collect([folder]), folder)
    if context.config.push_to_hub:
        from cardiobench.hub.after_run import push_all

        known = [result for result in summary.results if result.task in catalog.list_tasks()]  # no pooled ones
        failed = push_all(known, folder, context.console)
        summary.failures += [(model, "", "push", reason) for model, reason in failed]
