"""Editions of data: what has to be the same for two scores to be compared, and how a reader is told."""

from collections.abc import Mapping
from typing import Any

from cardiobench.results.score_result import ScoreResult


def version_key(result: ScoreResult) -> tuple:
    """Return what two results must share to be ranked together: version and digest of the data, patients used, metric."""
    return *data_version_key(result.dataset), result.metric, result.unit


def data_version_key(facts: Mapping[str, Any]) -> tuple[str, str, bool, str | None]:
    """Return version, digest, whether the data are generated, and the limit of patients."""
    limit = facts.get("limit")
    version, digest = (str(facts.get(name) or "") for name in ("version", "digest"))
    return version, digest, bool(facts.get("twin")), None if limit is None else str(limit)


def describe_version(key: tuple) -> str:
    """Return a version key as text for a reader."""
    version, digest, twin, limit, *metric = key
    words = [f"version {version or 'unknown'}", f"digest {digest[:12] or 'unknown'}"]
    words += ["synthetic twin"] * twin + ([f"first {limit} patients"] if limit else [])
    return ", ".join([*words, *([" ".join(metric).strip()] if metric else [])])
