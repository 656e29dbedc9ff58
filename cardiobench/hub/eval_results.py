"""Results as `.eval_results/cardiobench-<dataset>.yaml`: one value for each task and metric, for the dataset's leaderboard."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from cardiobench.core.conditions import installed_condition, split_parts
from cardiobench.core.errors import BadData, UnknownName
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
    """Return the protocol, with its variant, whose result represents a task.

    An entry has one value and no field for the protocol. Protocols declare a `headline_rank`, so that the best score is
    not selected; protocols without a rank or not installed come last, and so do results under a condition. Trained
    networks have no entry, because it would be ranked with frozen models; the result is empty if there are only such.
    """
    frozen = (label for label in protocols if _frozen(label))
    return min(frozen, key=lambda label: (_headline_rank(label), label), default="")


def _frozen(label: str) -> bool:
    try:
        return protocol_class(label.partition(".")[0]).condition == BaseProtocol.condition
    except UnknownName:
        return True


def _headline_rank(label: str) -> float:
    protocol, *variant = split_parts(label)
    if any(map(installed_condition, variant)):
        return math.inf
    try:
        rank = protocol_class(protocol).headline_rank
    except UnknownName:
        return math.inf
    return math.inf if rank is None else rank


def entries(result: ScoreResult, user: str, url: str, revision: str | None) -> list[dict[str, Any]]:
    """Return one entry per metric in the dataset's eval.yaml, written by the Hub's own class.

    The Hub's pages always rank larger values first. For an error they get the skill score, 100 * (floor - error) /
    floor: 0 at the floor, 100 for no error; the error is in the notes.
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
    """Return a metric for the Hub's pages, where larger is better; NaN for an error without a floor."""
    if naming.higher_is_better(result, metric):
        return result.overall[metric].value
    return 100 * skill(result) if metric == result.metric else math.nan


def merge(content: bytes | None, new: Sequence[dict[str, Any]], source: str) -> bytes:
    """Return the file with these entries; entries of other users and everything else stay byte for byte.

    Raises:
        BadData: The file is not a list of entries.
    """
    text = (content or b"").decode("utf-8")
    existing, tree = yaml_text.parse(text, source)
    if existing is None:
        newline = yaml_text.newline_of(text)
        lead = text if not text or text.endswith(("\n", "\r")) else text + newline
        return (lead + yaml_text.block(new, 0, newline)).encode()
    if not isinstance(tree, yaml.SequenceNode):
        raise BadData(
            f"{source} is not a list of evaluation results. Correct or delete it and push again; it was left unchanged."
        )
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
            f"{source} has a YAML layout that cannot be edited in place. Start each result on its own line with '- ' and push again."
        )
    return changed.encode()


def _key(entry: Any) -> tuple[Any, ...] | None:
    """Return the identity of a measurement: dataset, task, and the user who ran the benchmark."""
    if not isinstance(entry, dict) or not isinstance(entry.get("dataset"), dict):
        return None
    source = entry.get("source") or {}
    dataset = entry["dataset"]
    return dataset.get("id"), dataset.get("task_id"), source.get("name"), source.get("user")
