"""Report run scores to experiment trackers through accelerate."""

import math
import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import yaml

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import BadConfig
from cardiobench.core.registry import check_names
from cardiobench.hub.outgoing import public_name, public_settings
from cardiobench.results.score_result import ScoreResult

if TYPE_CHECKING:
    from accelerate.tracking import GeneralTracker

QUIET = dict.fromkeys(
    ("WANDB_X_DISABLE_META", "WANDB__DISABLE_META", "WANDB_DISABLE_CODE", "WANDB_DISABLE_GIT"), "true"
)
"""Prevent trackers from uploading the command line and its paths, unless the user enabled this."""


def tracker_classes(names: Sequence[str]) -> "list[type[GeneralTracker]]":
    """Return tracker classes by name, including classes registered with `accelerate.tracking.register_tracker_class`.

    Raises:
        UnknownName: The accelerate package has no such tracker.
        BadConfig: The package of the tracker is not installed.
    """
    if not names:
        return []
    from accelerate.tracking import LOGGER_TYPE_TO_CLASS, get_available_trackers
    from accelerate.utils import LoggerType

    check_names("tracker", names, LOGGER_TYPE_TO_CLASS)
    for name in names:
        if name in LoggerType.list() and name not in map(str, get_available_trackers()):
            raise BadConfig(
                f"--report-to {name} needs the package '{name.replace('_', '-')}', which is not installed here. "
                f"Install it with: pip install {name.replace('_', '-')}"
            )
    return [LOGGER_TYPE_TO_CLASS[name] for name in dict.fromkeys(names)]


def tracked_values(results: Iterable[ScoreResult]) -> dict[str, float]:
    """Return a mapping from `model/task/protocol/metric` to score, interval and floor, without NaN.

    Args:
        results: Results of a run.

    Returns:
        Mapping with the keys `.../<metric>`, `.../low`, `.../high` and `.../floor` for each result.
    """
    values = {}
    for result in results:
        model = public_name(str(result.model["name"]))
        prefix = "/".join(filter(None, (model, result.task, result.protocol, result.variant)))
        score = result.score
        values[f"{prefix}/{result.metric}"] = score.value
        values[f"{prefix}/low"], values[f"{prefix}/high"] = score.low, score.high
        values[f"{prefix}/floor"] = result.floor.value
    return {name: value for name, value in values.items() if math.isfinite(value)}


def report(results: Iterable[ScoreResult], config: RunConfig) -> None:
    """Send scores and public run settings to the trackers in `config.report_to`.

    Args:
        results: New and cached results of the run.
        config: Run settings; file-based trackers write to `<output_dir>/trackers`.
    """
    if not config.report_to:
        return
    values = tracked_values(results)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    for tracker_class in tracker_classes(config.report_to):
        folder = (str(config.output_dir / "trackers"),) if tracker_class.requires_logging_directory else ()
        tracker = tracker_class("cardiobench", *folder)
        tracker.start()
        tracker.store_init_configuration({"config": yaml.safe_dump(public_settings(config), sort_keys=False)})
        tracker.log(values, step=0)
        tracker.finish()
