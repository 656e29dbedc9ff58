"""Editions of data: equality required for two scores to be compared, and the text that tells readers."""

import shlex
from collections.abc import Mapping
from typing import Any

from cardiobench.results.score_result import ScoreResult


def version_key(result: ScoreResult) -> tuple:
    """Return the facts two results must share to be ranked together: version and digest of the data, patients, metric."""
    return *data_version_key(result.dataset), result.metric, result.unit


def data_version_key(facts: Mapping[str, Any]) -> tuple[str, str, bool, str | None]:
    """Return version, digest (empty for a score on references), whether the data are generated, and the limit of patients."""
    limit = facts.get("limit")
    version = str(facts.get("version") or "")
    digest = "" if facts.get("references_digest") else str(facts.get("digest") or "")
    return version, digest, bool(facts.get("twin")), None if limit is None else str(limit)


def same_version(key: tuple, other: tuple) -> bool:
    """Tell whether scores of two version keys may be ranked together.

    A score on a file of references has no digest of the data: it fits any data of its version.
    """
    return (key[0], *key[2:]) == (other[0], *other[2:]) and (key[1] == other[1] or not (key[1] and other[1]))


def references_command(task: str, out: str, data_dir: str | None = "DIR") -> str:
    """Return the command that writes the references of a task.

    Args:
        task: Name of the task.
        out: File that it writes.
        data_dir: Raw folder; None where the data is found without it.
    """
    source = "" if data_dir is None else f" --data-dir {shlex.quote(data_dir)}"
    return f"cardiobench references {task}{source} --out {shlex.quote(out)}"


def unknown_coverage(result: ScoreResult) -> str:
    """Return the sentence on a result whose references do not name their release, with the command that renews them."""
    command = references_command(result.task, str(result.dataset.get("references") or "references.csv"))
    return (
        "its references do not say which release they are of (made by hand, changed, or of an older version). Write them anew "
        f"({command}) and score again"
    )


def describe_version(key: tuple) -> str:
    """Return a version key as text for a reader."""
    version, digest, twin, limit, *metric = key
    words = [f"version {version or 'unknown'}", f"digest {digest[:12] or 'unknown'}"]
    words += ["synthetic twin"] * twin + ([f"first {limit} patients"] if limit else [])
    return ", ".join([*words, *([" ".join(metric).strip()] if metric else [])])
