"""Editions of data: what has to be the same for two scores to be compared, and how a reader is told."""

from collections.abc import Mapping
from typing import Any

from cardiobench.results.score_result import ScoreResult


def version_key(result: ScoreResult) -> tuple:
    """What has to be the same for two results to be ranked together: data, its digest, the units asked, the metric."""
    return *data_version_key(result.dataset), result.metric, result.unit


def data_version_key(facts: Mapping[str, Any]) -> tuple[str, str, bool, str | None]:
    """Version, digest, whether they are generated, and how many patients were used, of the facts of a dataset."""
    limit = facts.get("limit")
    version, digest = (str(facts.get(name) or "") for name in ("version", "digest"))
    return version, digest, bool(facts.get("twin")), None if limit is None else str(limit)


def describe_version(key: tuple) -> str:
    """An edition for a reader."""
    version, digest, twin, limit, *metric = key
    words = [f"version {version or 'unknown'}", f"digest {digest[:12] or 'unknown'}"]
    words += ["synthetic twin"] * twin + ([f"first {limit} patients"] if limit else [])
    return ", ".join([*words, *([" ".join(metric).strip()] if metric else [])])
