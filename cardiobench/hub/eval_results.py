"""Results as `.eval_results/cardiobench-<dataset>.yaml`: one value for each task and metric, for the dataset's leaderboard."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from cardiobench.core.errors import BadData, UnknownName
from cardiobench.core.extensions import contributions
from cardiobench.hub import naming, yaml_text
from cardiobench.hub.model_index import BENCHMARK
from cardiobench.protocols import protocol_class
from cardiobench.protocols.base import BaseProtocol
from cardiobench.report.overview import skill
from cardiobench.results.score_result import ScoreResult


def path(dataset: str) -> str:
    """Return the file of a dataset's results in a model repository."""
    return f".eval_results/cardiobench-{dataset}.yaml"


def primary_protocol(protocols: Iterable[str]) -> str:
    """Return the protocol, with its variant, whose result stands for a task.

    An entry has one value and no field for the protocol. Protocols declare their `headline_rank`, so that nobody picks the one
    with the best score; those without a rank, or not installed here, come last, as do results under a condition. Trained networks
    have no entry, which would be ranked with frozen models: empty where there are only such.
    """
    frozen = (label for label in protocols if _frozen(label))
    return min(frozen, key=lambda label: (_headline_rank(label), label), default="")


def _frozen(label: str) -> bool:
    try:
        return protocol_class(label.partition(".")[0]).condition == BaseProtocol.condition
    except UnknownName:
        return True


def _headline_rank(label: str) -> float:
    protocol, *variant = label.split(".")
    if {part.partition("=")[0] for part in variant} & contributions("conditions").keys():
        return math.inf
    try:
        rank = protocol_class(protocol).headline_rank
    except UnknownName:
        return math.inf
    return math.inf if rank is None else rank


def entries(result: ScoreResult, user: str, url: str, revision: str | None) -> list[dict[str, Any]]:
    """Return one entry per metric that the dataset's eval.yaml lists; the Hub's own class writes it.

    The Hub's pages rank the larger value first and know no other direction. Of an error they get the skill score,
    100 * (floor - error) / floor: 0 at the floor, 100 for no error; the error stands in the notes.
    """
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    values = {metric: ranking_value(result, metric) for metric in naming.listed_metrics(result)}
    return eval_result_entries_to_yaml(
        [
            EvalResultEntry(
                dataset_id=naming.dataset_id(result),
                task_id=naming.task_id(result, metric),
                value=value,
                dataset_revision=revision,
                date=result.stamp.get("date"),
                source_url=url,
                source_name=BENCHMARK,
                source_user=user,
                notes=naming.notes(result, metric),
            )
            for metric, value in values.items()
            if math.isfinite(value)
        ]
    )


def ranking_value(result: ScoreResult, metric: str) -> float:
    """Return a metric as the Hub's pages rank it, larger is better; NaN for an error whose floor is not known."""
    if naming.higher_is_better(result, metric):
        return result.overall[metric].value
    return 100 * skill(result) if metric == result.metric else math.nan


def merge(content: bytes | None, new: Sequence[dict[str, Any]], source: str) -> bytes:
    """Return the file with these entries in it; entries of other users, and everything else in it, stay byte for byte.

    Raises:
        BadData: the file is not a list of entries.
    """
    text = (content or b"").decode("utf-8")
    existing, tree = yaml_text.parse(text, source)
    if existing is None:
        newline = yaml_text.newline_of(text)
        lead = text if not text or text.endswith(("\n", "\r")) else text + newline
        return (lead + yaml_text.block(new, 0, newline)).encode()
    if not isinstance(tree, yaml.SequenceNode):
        raise BadData(f"{source} is not a list of evaluation results; it was left as it is.")
    waiting = {_key(entry): entry for entry in new}
    replaced, removed = {}, []
    for position, old in enumerate(existing):
        if _key(old) in waiting:
            fresh = waiting.pop(_key(old))
            if fresh != old:
                replaced[position] = fresh
        elif any(_key(old) == _key(entry) for entry in new):
            removed.append(position)
    edits = yaml_text.change_items(text, tree, replaced, removed, list(waiting.values()))
    changed = yaml_text.apply(text, edits)
    others = [repr(entry) for entry in existing if _key(entry) not in {_key(entry) for entry in new}]
    after = yaml_text.parse(changed, source)[0]
    if [repr(entry) for entry in after if _key(entry) not in {_key(entry) for entry in new}] != others:
        raise BadData(
            f"{source} is written in a way that cannot be changed in place. Write one '- ' per line and push again."
        )
    return changed.encode()


def _key(entry: Any) -> tuple | None:
    """Return the identity of a measurement: dataset, task, and the user who ran this benchmark."""
    if not isinstance(entry, dict) or not isinstance(entry.get("dataset"), dict):
        return None
    source = entry.get("source") or {}
    dataset = entry["dataset"]
    return dataset.get("id"), dataset.get("task_id"), source.get("name"), source.get("user")
