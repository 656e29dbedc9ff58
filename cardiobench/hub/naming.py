"""Names of results on the Hub: ids, titles and the line of notes with a number."""

import math
import re

from cardiobench.core.config import hub_namespace
from cardiobench.core.errors import BadData
from cardiobench.data import catalog
from cardiobench.data.eval_file import entry_id
from cardiobench.results.formatting import coverage, flags, verdict
from cardiobench.results.score_result import ScoreResult

FOLDER = "cardiobench"
"""Folder of the result files in a model's repository."""
SPLIT = "test"
SAFE = re.compile(r"[\w.,=+-]+", re.ASCII)
"""Path component; the value of a condition may follow, as in `probe.name=a,b`."""
TASK = re.compile(r"[a-z0-9_]+/[a-z0-9_]+")
LONGEST = 100
"""Maximum number of characters of a name in a message."""


def wrong_names(result: ScoreResult) -> list[str]:
    """Return why names in a result cannot enter a dataset of results; empty if all can.

    Model names follow the rules of the Hub in ASCII, because other signs can imitate a name, such as U+2215 for "/". Names
    of datasets and targets consist of a-z, 0-9 and "_".
    """
    name, about = str(result.model.get("name")), str(result.dataset.get("name"))
    wrong = "it is that of a folder or file of one machine" if result.model.get("local") else wrong_model_name(name)
    problems = [f"{name[:LONGEST]!r} is not a valid model name: {wrong}"] if wrong else []
    if not TASK.fullmatch(result.task) or about != result.task.partition("/")[0]:
        problems.append(
            f"the task {result.task[:LONGEST]!r} of the dataset {about[:LONGEST]!r} is not <dataset>/<target> in a-z, 0-9 and '_'"
        )
    if not SAFE.fullmatch(result.label):
        problems.append(f"{result.label[:LONGEST]!r} is not a valid name of a protocol")
    return problems


def wrong_model_name(name: str) -> str:
    """Return why a name cannot be that of a model on the Hub; empty if it can."""
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id

    if not name.isascii() or not name.isprintable():
        return "names on the Hub have only ASCII letters, digits, '-', '_' and '.'"
    try:
        validate_repo_id(name)
    except HFValidationError as error:
        return " ".join(str(error).partition(f": {name!r}")[0].split())
    return ""


def dataset_id(result: ScoreResult) -> str:
    """Return the dataset's repository, `cardiobench/tmed2`; the plain name for the user's own data, which has none."""
    name = result.task.partition("/")[0]
    return name if result.dataset.get("local") else f"{hub_namespace()}/{name}"


def task_id(result: ScoreResult, metric: str) -> str:
    """Return the name of the entry in the dataset's eval.yaml, such as `tmed2_as_f1_macro`."""
    return entry_id(result.task, metric)


def result_path(result: ScoreResult, user: str) -> str:
    """Return a result's path in a model's repository: `cardiobench/<user>/<protocol>/<dataset>__<target>.json`."""
    parts = (user, result.label, *result.task.split("/"))
    if len(parts) != 4 or not all(SAFE.fullmatch(part) and part.strip(".") for part in parts):
        raise BadData(f"a result of task '{result.task}', protocol '{result.label}' has no name for a file.")
    return f"{FOLDER}/{user}/{parts[1]}/{parts[2]}__{parts[3]}.json"


def rehearsal_path(result: ScoreResult, user: str) -> str:
    """Return the path of a rehearsal in a model's repository, separate from the scores of the benchmark."""
    return result_path(result, user).replace(f"{FOLDER}/", f"{FOLDER}/rehearsals/", 1)


def defined(result: ScoreResult) -> list[str]:
    """Return the metrics that have a value; the ranking metric first."""
    names = [result.metric, *(name for name in result.overall if name != result.metric)]
    return [name for name in names if math.isfinite(result.overall[name].value)]


def listed_metrics(result: ScoreResult) -> list[str]:
    """Return the defined metrics with an entry in the dataset's eval.yaml."""
    return [name for name in catalog.task(result.task).metrics if name in defined(result)]


def higher_is_better(result: ScoreResult, metric: str) -> bool:
    """Return the direction of a metric: from the result for the ranking metric, from its module for others."""
    return result.higher_is_better if metric == result.metric else result.number(metric).higher_is_better


def notes(result: ScoreResult, metric: str) -> str:
    """Return the context of a number: protocol, interval, number of patients, floor, flags."""
    estimate, floor = result.overall[metric], result.floor
    parts = [f"protocol {result.label}"]
    if not higher_is_better(result, metric):
        value = f"{metric} {estimate.value:.6g} {result.number(metric).value_unit(result.unit)}".strip()
        parts.insert(0, f"skill score (0 = the floor, 100 = no error); {value}")
    if math.isfinite(estimate.low):
        parts.append(
            f"95 % CI {estimate.low:.4g} to {estimate.high:.4g} over {estimate.n_patients} patients, n={estimate.n}"
        )
    else:
        parts.append(f"no interval, {estimate.n_patients} patients, n={estimate.n}")
    if metric == result.metric:
        value = f"floor {floor.value:.4g}: " if math.isfinite(floor.value) else ""
        parts.append(f"{value}{verdict(result)}")
    parts.append(f"coverage {coverage(result)}")
    parts.append(f"seen in pretraining: {known(result.seen_in_pretraining)}")
    parts += [flag for flag in flags(result) if "pretraining" not in flag]
    return "; ".join(parts)


def known(answer: bool | None) -> str:
    """Return yes, no or unknown."""
    return "unknown" if answer is None else "yes" if answer else "no"
