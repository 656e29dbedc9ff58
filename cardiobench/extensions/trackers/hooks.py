"""Report the results of a run to experiment trackers."""

from collections.abc import Sequence

from cardiobench.core.config import RunConfig
from cardiobench.extensions.trackers.report import report, tracker_classes
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.hooks import RunHooks


class TrackerHooks(RunHooks):
    """Trackers named by `--report-to`."""

    def check(self, config: RunConfig) -> None:
        """Refuse trackers that are unknown or not installed."""
        tracker_classes(config.report_to)

    def after_run(self, results: Sequence[ScoreResult], config: RunConfig) -> None:
        """Send scores and public run settings to the trackers."""
        report(results, config)
