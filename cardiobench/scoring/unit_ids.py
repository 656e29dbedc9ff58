"""Matching of the ids of answers with the units of a split, with suggestions for unknown ids."""

import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd

from cardiobench.core.errors import BadPredictions, counted, first_n
from cardiobench.data.references import check_references
from cardiobench.data.spec import Task

SAMPLE = 5
"""Maximum number of unknown ids for which suggestions are searched."""
EXTENSIONS = re.compile(r"(\.(0|[a-z][a-z0-9]{0,4}))+$")


def match_units(
    references: pd.DataFrame,
    ids: pd.Series,
    task: Task,
    source: str = "predictions",
    split: str = "test",
    allow_missing: bool = False,
    unlabelled: pd.DataFrame | None = None,
) -> tuple[pd.DataFrame, np.ndarray]:
    """Match the ids of answers with the references of a split.

    Args:
        references: Id, patient_id, split and y_true of all splits.
        ids: Ids of the answers.
        task: Task that they answer.
        source: Name of the answers in messages.
        split: Split to score.
        allow_missing: Whether units may have no answer; at least one needs an answer.
        unlabelled: Id and split of the units without a label. Answers for those of the split are left out.

    Returns:
        References of the split, and the position of each in `ids`, -1 if it has no answer.

    Raises:
        BadPredictions: Ids are missing, unknown or repeated, or the split has no rows.
    """
    check_references(references, task)
    wanted = references[references["split"] == split]
    if wanted.empty:
        raise BadPredictions(f"the references of {task.name} have no row in split '{split}'. Choose another split.")
    repeated = ids[ids.duplicated()].unique()
    if len(repeated):
        advice = f"Give one row per {task.unit_column}."
        raise BadPredictions(f"{source} repeats {counted(len(repeated), 'id')}: {first_n(repeated)}. {advice}")
    place = pd.Index(ids).get_indexer(wanted["id"])
    known = ids.isin(_of_split(unlabelled, split)).to_numpy(copy=True)
    known[place[place >= 0]] = True
    missing, extra = wanted["id"][place < 0].tolist(), ids[~known].tolist()
    if not extra and (not missing or (allow_missing and len(missing) < len(wanted))):
        return wanted, place
    parts = [f"{source} has {len(wanted) - len(missing)} of the {len(wanted)} {units_text(task, split)}."]
    if missing:
        parts.append(f"Missing: {first_n(missing)}.")
    if extra:
        everything = references if unlabelled is None else pd.concat([references, unlabelled], ignore_index=True)
        parts += _extra_ids(everything[["id", "split"]], extra, source)
    elif len(missing) < len(wanted):
        parts.append(
            "Answer all, or score the given answers with --allow-missing (in Python allow_missing=True): the coverage is "
            "stamped, and the verdict is judged as if every missing answer were wrong."
        )
    raise BadPredictions(" ".join(parts))


def count_unlabelled(ids: pd.Series, unlabelled: pd.DataFrame | None, split: str) -> int:
    """Return the number of answers for units of a split that have no label."""
    return int(ids.isin(_of_split(unlabelled, split)).sum())


def _of_split(unlabelled: pd.DataFrame | None, split: str) -> Iterable[str]:
    return () if unlabelled is None else unlabelled.loc[unlabelled["split"] == split, "id"]


def units_text(task: Task, split: str) -> str:
    """Return how messages name the units of a split."""
    return f"{split} {'patients' if task.unit_column == 'patient_id' else 'units'} of {task.name}"


def _extra_ids(known: pd.DataFrame, extra: Sequence[str], source: str) -> list[str]:
    """Return sentences about ids that are not units of the split: their split, or similar known ids."""
    split_of = dict(zip(known["id"], known["split"], strict=True))
    parts = [f"Not among them: {first_n(extra)}."]
    elsewhere = pd.Series([split_of[name] for name in extra if name in split_of], dtype=object)
    parts += [
        f"{count} of these are in split '{name}': leave them out." for name, count in elsewhere.value_counts().items()
    ]
    unknown = [name for name in extra if name not in split_of]
    if unknown:
        answered = set(extra)
        parts += _spelling_hint([name for name in split_of if name not in answered], unknown, source)
    return parts


def _spelling_hint(known: Sequence[str], unknown: Sequence[str], source: str) -> list[str]:
    """Suggest known ids for unknown ones, by the change of spelling that explains most of them."""
    ours, theirs = [_plain(name) for name in known], [_plain(name) for name in unknown]
    spellings = [(ours, theirs)]
    if len(theirs) > 1:  # A single match may be a coincidence.
        spellings.append(([_number(name) for name in ours], [_number(name) for name in theirs]))
    spellings += [
        ([_without(name, *of_ours) for name in ours], [_without(name, *of_theirs) for name in theirs])
        for of_ours, of_theirs in _affixes(ours, theirs)
    ]
    best: list[tuple[str, str]] = []
    for our_keys, their_keys in spellings:
        place = {key: number for number, key in reversed(list(enumerate(our_keys))) if key}
        pairs = [(unknown[number], known[place[key]]) for number, key in enumerate(their_keys) if key in place]
        best = max(best, pairs, key=len)
    if not best:
        return [
            f"No id of the references resembles {'it' if len(unknown) == 1 else 'them'}. `cardiobench references` writes the expected ids."
        ]
    found, meant = best[0]
    return [
        f"{len(best)} differ only in spelling ('{meant}' in the references, '{found}' in {source}; did you mean '{meant}'?): "
        "write ids as text, exactly as the references have them."
    ]


def _plain(name: str) -> str:
    """Return an id in lower case, without folders, file extensions and leading zeros."""
    name = name.strip().lower().replace("\\", "/").rstrip("/").rpartition("/")[2]
    return EXTENSIONS.sub("", name).lstrip("0") or "0"


Affix = tuple[str, str]


def _affixes(ours: Sequence[str], theirs: Sequence[str]) -> Iterator[tuple[Affix, Affix]]:
    """Yield pairs of prefix and suffix to remove from our ids and from theirs; one of the two pairs is empty."""
    seen = set()
    for name in theirs[:SAMPLE]:
        inside = sorted((one for one in set(ours) if one in name and one != name), key=lambda one: (-len(one), one))
        around = sorted((one for one in set(ours) if name in one and one != name), key=lambda one: (len(one), one))
        pairs = [(name, one, False) for one in inside[:SAMPLE]] + [(one, name, True) for one in around[:SAMPLE]]
        for longer, shorter, is_ours in pairs:
            before, _, after = longer.partition(shorter)
            if _splits_number(before.rstrip("0"), shorter) or _splits_number(shorter, after):
                continue
            for prefix in (before.rstrip("0"), before):  # The zeros may belong to a zero-padded number.
                affix = (prefix, after)
                if (affix, is_ours) not in seen:
                    seen.add((affix, is_ours))
                    yield (affix, ("", "")) if is_ours else (("", ""), affix)


def _splits_number(left: str, right: str) -> bool:
    return left[-1:].isdigit() and right[:1].isdigit()


def _number(name: str) -> str:
    """Return the number in an id without leading zeros; empty if it has none or several."""
    numbers = re.findall(r"\d+", name)
    return (numbers[0].lstrip("0") or "0") if len(numbers) == 1 else ""


def _without(name: str, prefix: str, suffix: str) -> str:
    """Return an id without a prefix, a suffix and leading zeros; empty if it lacks one of them."""
    if not (name.startswith(prefix) and name.endswith(suffix) and len(name) > len(prefix) + len(suffix)):
        return ""
    return name[len(prefix) : len(name) - len(suffix)].lstrip("0") or "0"
