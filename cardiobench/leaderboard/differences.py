"""Compare all values of a submitted result with a rebuilt one, except for a short list taken on trust."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cardiobench.results.record import CHECKSUM

Leaf = tuple[str | int, ...]
"""Path of a value in a JSON tree: mapping keys and list positions."""

RELATIVE, ABSOLUTE = 1e-6, 1e-9
"""Tolerance between two computations of a number; rounding differences between processors are much smaller."""
ABSENT = "nothing"
HOST = "fact about the machine or the run of the submitter"
COST = "declared by the submitter, because predictions do not show it; width and parameters are compared with the model's card"
LIBRARIES = ("cardiobench", "numpy", "scipy", "scikit-learn", "pandas", "torch", "libraries", "python", "commit")
TRUSTED: Mapping[Leaf, str] = {
    ("model",): "predictions do not show which model made them",
    (
        "protocol",
    ): "predictions do not show how they were made; units, options and family are those of the named protocol",
    ("variant",): "as for the protocol; it must be one of its variants",
    (
        "predictions_sha256",
    ): "checksum of the submitter's own file, which also holds labels; its first 16 digits name the file that was sent",
    ("stamp", "suite"): "facts about the submitter's run; the suite must be known, and its options are compared",
    ("stamp", "date"): "date of scoring; it must not be in the future",
    **{("stamp", name): HOST for name in (*LIBRARIES, "key", "code", "components", "embeddings", "device", "seconds")},
    ("stamp", "source_checksum"): "checksum of the file on the submitter's machine",
    ("stamp", "recordings"): "digest of the recordings on the submitter's machine",
    ("stamp", "validation_sha256"): "checksum of predictions for validation patients, which are not sent",
    ("cost",): COST,
    ("cost", "timings"): HOST,
    ("options", "device"): HOST,
    (
        "refits",
        "draws",
    ): "digest of the training patients drawn in the submitter's run; the scores of its refits are compared",
}
"""Mapping from the first one or two keys of a path to the reason why the value cannot be compared."""
SAYS: Mapping[Leaf, str] = {
    ("dataset", "digest"): "it was scored on data {one}, and those here are {other}",
    ("dataset", "references_digest"): "it was scored on references {one}, and those of the release are {other}",
    ("stamp", "resamples"): "it was scored with {one} draws, and submissions are scored with {other}",
    ("stamp", "seed"): "it was scored with seed {one}, and submissions are scored with seed {other}",
}
FITTED = "choices made while the protocol was fitted; its options are compared"
OF_MODEL = "sentences about the model; those determined by data and predictions are compared"
DECLARED = "declared by the submitter: the model has no card here"


def leaves(value: Any, path: Leaf = ()) -> dict[Leaf, Any]:
    """Return a mapping from path to value for all leaves of a JSON tree; empty lists and mappings are leaves."""
    if isinstance(value, Mapping) and value:
        return {key: leaf for name in value for key, leaf in leaves(value[name], (*path, name)).items()}
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        return {key: leaf for number, entry in enumerate(value) for key, leaf in leaves(entry, (*path, number)).items()}
    return {path: value}


def trusted(path: Leaf, options: Mapping[str, Any]) -> str:
    """Return why a leaf is taken on trust; empty if it is compared.

    Args:
        path: Path of the leaf.
        options: Names of the protocol's options.
    """
    if path[0] == "options" and (len(path) == 1 or path[1] not in options):
        return FITTED  # A path of length one means that there are no options at all.
    return TRUSTED.get(path[:2]) or TRUSTED.get(path[:1], "")


def on_trust() -> dict[str, str]:
    """Return a mapping from fields taken on trust to reasons."""
    fields: dict[str, list[str]] = {}
    for path, why in TRUSTED.items():
        fields.setdefault(why, []).append(" ".join(map(str, path)))
    named = {", ".join(names): why for why, names in fields.items()}
    return {
        **named,
        "options beside those of the protocol, and whether options are stated at all": FITTED,
        "warnings about the model": OF_MODEL,
    }


def differences(
    claimed: Mapping[str, Any],
    again: Mapping[str, Any],
    *,
    on_trust: Callable[[Leaf], str],
    compared: Callable[[Leaf], bool] = lambda path: True,
    clean: Callable[[str], str] = str,
) -> Iterator[str]:
    """Yield all differences between the leaves of two results, including missing keys.

    Args:
        claimed: JSON of the submitted result.
        again: JSON of the rebuilt result.
        on_trust: Function from path to the reason for trust; empty if compared.
        compared: Function from path to whether it can be compared.
        clean: Function applied to every text before comparison, such as the removal of ids.
    """
    told, found = leaves(claimed), leaves(again)
    for path in dict.fromkeys((*SAYS, *told, *found)):  # Start with paths that explain many other differences.
        if path == (CHECKSUM,) or on_trust(path) or not compared(path):
            continue
        one, other = told.get(path, ABSENT), found.get(path, ABSENT)
        if not same(one, other, clean):
            yield SAYS.get(path, "{path}: {one} claimed, {other} scored again").format(
                path=_name(path), one=_text(one), other=_text(other)
            )


def same(one: Any, other: Any, clean: Callable[[str], str] = str) -> bool:
    """Return whether two leaves are equal, with a tolerance for numbers."""
    if isinstance(one, str) and isinstance(other, str):
        return clean(one) == clean(other)
    numbers = [isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, other)]
    if all(numbers) and any(isinstance(value, float) for value in (one, other)):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return type(one) is type(other) and one == other


def missing_sentences(claimed: Sequence[str], again: Sequence[str], clean: Callable[[str], str]) -> Iterator[str]:
    """Yield required warnings that a result omits or changes."""
    told = iter(clean(sentence) for sentence in claimed)
    for sentence in again:
        # The iterator also checks the order, because `in` continues after the last match.
        if clean(sentence) not in told:
            yield f"warnings: '{sentence}' is left out or changed"
            return


def _name(path: Leaf) -> str:
    names = ("floor" if part == "floors" else str(part) for part in path)
    return " ".join(names)


def _text(value: Any) -> str:
    return f"{value:.9g}" if isinstance(value, float) else repr(value) if isinstance(value, str) else f"{value}"
