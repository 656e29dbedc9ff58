"""Compare and describe data versions of scores."""

from collections.abc import Mapping
from typing import Any

from cardiobench.core.command import command
from cardiobench.results.score_result import ScoreResult


def version_key(result: ScoreResult) -> tuple:
    """Return the facts that results must share to be ranked together: data version and digest, patients, metric."""
    return *data_version_key(result.dataset), result.metric, result.unit


def data_version_key(facts: Mapping[str, Any]) -> tuple[str, str, bool, str | None]:
    """Return version, digest (empty for scores on references), whether the data is generated, and the patient limit."""
    limit = facts.get("limit")
    version = str(facts.get("version") or "")
    digest = "" if facts.get("references_digest") else str(facts.get("digest") or "")
    return version, digest, bool(facts.get("twin")), None if limit is None else str(limit)


def same_version(key: tuple, other: tuple) -> bool:
    """Return whether scores of two version keys can be ranked together.

    Scores on reference files have no data digest and match any data of the same version.
    """
    return (key[0], *key[2:]) == (other[0], *other[2:]) and (key[1] == other[1] or not (key[1] and other[1]))


def references_command(task: str, out: str, data_dir: str | None = "DIR") -> str:
    """Return the command that writes the references of a task.

    Args:
        task: Name of the task.
        out: Output file.
        data_dir: Folder with raw data; None if it is found automatically.
    """
    source = () if data_dir is None else ("--data-dir", data_dir)
    return command("references", task, *source, "--out", out)


def unknown_coverage(result: ScoreResult) -> str:
    """Return a warning that references do not state their release, with the command to renew them."""
    renewal = references_command(result.task, str(result.dataset.get("references") or "references.csv"))
    return (
        "its references do not state their release (made by hand, modified, or from an older version). Write them again "
        f"({renewal}) and score again"
    )


def describe_version(key: tuple) -> str:
    """Format a version key for readers."""
    version, digest, twin, limit, *metric = key
    words = [f"version {version or 'unknown'}", f"digest {digest[:12] or 'unknown'}"]
    words += ["synthetic twin"] * twin + ([f"first {limit} patients"] if limit else [])
    return ", ".join([*words, *([" ".join(metric).strip()] if metric else [])])
