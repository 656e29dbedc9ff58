"""Compare two JSON records field by field."""

import math
import platform
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_info

from cardiobench.core.libraries import installed_version

FURTHER = (
    *("accuracy", "balanced_accuracy", "ppv", "npv", "auprc", "brier", "calibration_slope", "calibration_intercept"),
    *("rmse", "r2", "pearson", "spearman", "concordance"),
)
"""Numbers that moved from `overall` to `further` with unchanged values."""

CHANGING = {
    "schema": "new fields get a new number",
    "out_of_fold": "a field that results did not have",
    "overall.multilabel_*": "numbers of decisions, which results of several labels did not have",
    "numbers": "facts of the metrics, which schema 3 did not hold",
    "cost": "the cost of encoding, which results did not hold",
    "rules": "rules 3 judge information first and the floor second",
    "verdict.sentence": "rules 3 name the test, its share of permutations and both intervals",
    "verdict.p_adjusted": "rules 3 judge fixed out-of-fold answers at a third of the level",
    **{f"verdict.{name}": "a field of rules 3" for name in ("p_reversed", "test", "refitted", "n_effective", "former")},
    **{
        pattern: "the pessimistic end of a mean of errors counts one made-up failure, and arms are stretched for unequal patients"
        for part in ("overall", "groups.*.values", "per_class.*", "values")
        for pattern in (f"{part}.*.low", f"{part}.*.high")
    },
    **{
        f"overall.{key}.{name}": "numbers that are read on demand stand without an interval"
        for key in (*FURTHER, "auprc_macro", "agreement_low", "agreement_high")
        for name in ("n", "n_patients", "reason", "se", "method", "covers")
    },
    **dict.fromkeys((f"overall.{key}" for key in ("mcc", "nll", "nmae", "ece")), "results leave out what others say"),
    **dict.fromkeys(
        (f"overall.{key}*" for key in ("within_5_points", "mean_probability", "observed_share")),
        "a number that results did not hold",
    ),
    **dict.fromkeys(("floors.train_constant", "floors.chance"), "results leave out floors that decide nothing"),
    "overall.failed*": "the share of patients who failed, which results did not hold",
    "per_class.*.auprc_*": "the interval of average precision, which results did not hold",
    **{
        f"groups.*.{gap}.{name}": "what the mix of true values explains is subtracted, and numbers are permuted within tenths"
        for gap in ("gap", "others.*")
        for name in ("expected", "excess", "p_value", "p_adjusted", "difference", "low", "high", "mix")
    },
    "tables_sha256.curve": "the intervals of few_shot are stretched for unequal patients",
    "tables_sha256.matrix": "the intervals of transfer are stretched for unequal patients",
    "options.change_from_own_probe.low": "stretched for unequal patients",
    "options.change_from_own_probe.covers": "transfer compares probes over their training patients as well",
    "values.* -> *: change.covers": "transfer compares probes over their training patients as well",
    "options.change_from_own_probe.high": "stretched for unequal patients",
    **{
        f"{part}.{key}*.{name}": "shares of rows have the exact interval, and the standard error from the rows' influence"
        for part in ("overall", "groups.*.values")
        for key in ("sensitivity", "specificity", "within_", "failed")
        for name in ("method", "se")
    },
    "overall.within_*.reason": "a share of all or of none has a width",
    "verdict.low": "from the interval of the score",
    "verdict.high": "from the interval of the score",
    "options.cut*": "what is said of the cut; the records are those of the most probable class",
    "values.p_value_at_*": "one classifier overlaps with itself whatever it has learned",
    "stamp.recordings": "sizes and times of the files on a machine",
    "stamp.validation_sha256": "digits of validation predictions, whose last ones differ between processors",
    "options.weights*": "the folder of a training is named by a digest that holds `stamp.recordings`",
    "refits*": "scores of refits, which results did not hold",
    "options.*comparison_refits": "the number of refits for comparisons, which protocols did not have",
    "options.seed": "the seed of the draws for comparisons, which zero_shot did not have",
    "seal": "the checksum of the file itself",
    "stamp.key": "composed of versions",
    "stamp.code": "versions of the components",
    "stamp.embeddings": "the key of the embeddings, composed of versions",
    "stamp.tokens*": "the keys of the tokens, composed of versions",
    "stamp.date": "when it was made",
    "stamp.seconds": "how long it took",
    "stamp.libraries": "what is installed",
    "stamp.origin": "a digest of the temporary folder's path",
    "stamp.commit": "of the checkout",
    **dict.fromkeys(
        (f"stamp.{name}" for name in ("cardiobench", "numpy", "scipy", "scikit-learn", "pandas", "torch", "python")),
        "what is installed",
    ),
}
"""Fields that may always differ, with the reason."""

OF_FILES = {
    "predictions_sha256": "bytes of a Parquet file, which its library's version changes",
    "tables_sha256.*": "bytes of a CSV, in which the last digits of numbers stand",
    "dataset.digest": "covers the sizes of a twin's generated files",
    "datasets*.digest": "likewise",
    "model.revision": "a digest of weights, which are random for some models",
    "floors.random_vit*": "the largest of nearly equal tokens of a network that never learned",
}
"""Fields that may differ on another machine."""

SENSITIVE = {
    "overall.calibration_slope*": 0.05,
}
"""Relative tolerances on another machine: a regression on the logits of nearly separable answers magnifies their last digits."""

OF_FRAMES = {
    "verdict.p_value": "rules 3 exchange whole patients, with all their views and phases, and permute 1,999 times"
}
"""Fields of masks and points that may differ."""

OF_FOLDS = {
    "verdict.p_value": "labels are permuted and embeddings fitted again, where fixed out-of-fold answers were permuted",
    "verdict.word": "likewise",
}
"""Fields of answers out of fold that may differ."""


@cache
def machine() -> dict[str, str]:
    """Describe the hardware and libraries that affect the last bits of a result."""
    kernels = {pool["architecture"] for pool in threadpool_info() if "architecture" in pool}
    instructions = ", ".join(sorted({*kernels, torch.backends.cpu.get_cpu_capability()}))
    return {
        "processor": _processor(),
        "instructions": instructions,  # Processors with the same name can support different instructions.
        "python": platform.python_version(),
        **_libraries(),
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.is_file() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor()


def _libraries() -> dict[str, str]:
    names = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "torch", "umap-learn", "shap", "xgboost")
    return {name: installed for name in names if (installed := installed_version(name))}


def differences(old: Any, new: Any, *, exact: bool, rtol: float) -> list[str]:
    """List the fields in which two records differ.

    Args:
        old: Reference record.
        new: Record to check.
        exact: Whether both records come from the same machine, so that numbers must be bitwise equal.
        rtol: Relative tolerance for numbers if `exact` is False.

    Returns:
        One line per differing field, with both values.
    """
    dense = isinstance(old, dict) and old.get("metric") in ("dice", "landmark_error")
    skipped = {**CHANGING, **({} if exact else OF_FILES), **(OF_FRAMES if dense else {})}
    skipped |= OF_FOLDS if isinstance(new, dict) and new.get("out_of_fold") else {}
    return [
        f"{field}: {was!r} -> {now!r}"
        for field, was, now in _pairs(*map(_without_reason, (old, new)))
        if not _same(was, now, exact, tolerance(field, rtol))
        and not any(fnmatch(field, pattern) for pattern in skipped)
        if not (field == "verdict.word" and (was in OLDER_WORDS or (was, now) == NARROWER))
    ]


def tolerance(field: str, rtol: float) -> float:
    """Return the relative tolerance of a field on another machine."""
    return max([rtol, *(larger for pattern, larger in SENSITIVE.items() if fnmatch(field, pattern))])


OLDER_WORDS = ("below the floor", "too few to say")
"""Verdicts that are rarer under version 3 of the rules: noise is no longer "below the floor", nor many rare classes "too few"."""


NARROWER = ("above the floor", "carries information, not above the floor")
"""Old and new verdict of a mean error whose interval now includes the floor, because its upper end counts one extra failure."""


def _without_reason(record: Any) -> Any:
    """Return a record with all numbers in one mapping, without warnings that repeat the verdict or describe an overlap."""
    if isinstance(record, dict) and record.get("protocol") == "representation":
        return {**record, "warnings": [one for one in record["warnings"] if not one.startswith("overlap of the ")]}
    if not isinstance(record, dict) or "verdict" not in record:
        return record
    reason = f"{record['verdict']['word']}: {record['verdict']['sentence']}"
    overall = record["overall"] | {key: {"value": value} for key, value in record.get("further", {}).items()}
    record = {**{name: part for name, part in record.items() if name != "further"}, "overall": overall}
    kept = [text for text in record["warnings"] if text != reason and " patients failed (" not in text]
    kept = [
        text for text in kept if "the interval is rough below" not in text and " is wide below, because " not in text
    ]
    return {**record, "warnings": kept}


ABSENT = "(absent)"
UNORDERED = ("", "stamp", "groups.*.values", "skipped_groups")
"""Mappings whose order does not matter; ordered groups once stood in the order of their names."""


def _pairs(old: Any, new: Any, field: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (field, old value, new value) for each leaf of the two records."""
    if isinstance(old, dict) and isinstance(new, dict):
        if not any(fnmatch(field, one) for one in UNORDERED) and old.keys() == new.keys() and list(old) != list(new):
            yield f"{field}, order", list(old), list(new)
        for name in {**old, **new}:
            inner = f"{field}.{name}" if field else name
            yield from _pairs(old.get(name, ABSENT), new.get(name, ABSENT), inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (was, now) in enumerate(zip(old, new, strict=True)):
            yield from _pairs(was, now, f"{field}[{number}]")
    else:
        yield field, old, new


def _same(was: Any, now: Any, exact: bool, rtol: float) -> bool:
    if exact or not (type(was) is type(now) is float):
        return type(was) is type(now) and was == now
    return math.isclose(was, now, rel_tol=rtol, abs_tol=rtol)
