"""Results and records from folders, and what is wrong with those that may not be ranked: nothing is dropped in silence."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cardiobench.errors import BadData, MissingData
from cardiobench.report.record import KIND, Record
from cardiobench.report.result import Estimate, Result, predictions_path, seal
from cardiobench.report.tables import FRACTIONS, protocol_name

PATTERN = "*__*.json"
TOLERANCE = 1e-9
VERDICTS = ("yes", "no", "tied", "unknown")


@dataclass(frozen=True)
class Entry:
    """A result that may be ranked.

    Attributes:
        path: of its file, or its place in a dataset of results.
        result: the result.
        predictions: the answers beside it; None where they are not here.
    """

    path: Path
    result: Result
    predictions: Path | None = None

    @property
    def setting(self) -> str:
        """Model and protocol, as a row of a table is called."""
        return f"{self.result.model['name']}, {protocol_name(self.result)}"


@dataclass(frozen=True)
class Problem:
    """Something that was found and is not ranked.

    Attributes:
        where: file.
        kind: a few words: unreadable, half-finished, edited by hand, other dataset version, older run.
        what: what is wrong with it, and what to do.
        about: model and task, where the file says so.
    """

    where: str
    kind: str
    what: str
    about: str = ""


@dataclass(frozen=True)
class Collection:
    """Everything that a report is about.

    Attributes:
        entries: results that may be ranked, by task and model.
        records: what studies found, each with its file.
        problems: files that are not ranked, and why.
    """

    entries: tuple[Entry, ...]
    records: tuple[tuple[Path, Record], ...] = ()
    problems: tuple[Problem, ...] = ()

    @property
    def results(self) -> list[Result]:
        """The results that may be ranked."""
        return [entry.result for entry in self.entries]

    @property
    def files(self) -> list[tuple[Path, Result]]:
        """The same results, each with its file."""
        return [(entry.path, entry.result) for entry in self.entries]


@dataclass
class _Found:
    entries: list[Entry] = field(default_factory=list)
    records: list[tuple[Path, Record]] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def collect(folders: Sequence[Path]) -> Collection:
    """Read every result and record below the folders.

    Raises:
        MissingData: no such folder, or nothing in it that looks like a result.
    """
    found = _Found()
    for folder in folders:
        if not folder.is_dir():
            raise MissingData(f"there is no folder {folder}. Name the --output-dir of a run.")
        for path in sorted(folder.rglob(PATTERN)):
            _read(path, path.relative_to(folder).as_posix(), found)
        found.problems += _unfinished(folder)
    if not (found.entries or found.records or found.problems):
        named = " ".join(str(folder) for folder in folders)
        raise MissingData(f"no result in {named}. Run: accelerate launch -m cardiobench.eval --model ID")
    return assemble(found.entries, found.records, found.problems)


def assemble(
    entries: Iterable[Entry], records: Iterable[tuple[Path, Record]] = (), problems: Iterable[Problem] = ()
) -> Collection:
    """Keep one edition of each task's data and the newest result of each setting; the others become problems."""
    one_edition, other = _one_edition(list(entries))
    newest, older = _newest(one_edition)
    order = sorted(newest, key=lambda entry: (entry.result.task, entry.setting, str(entry.path)))
    return Collection(tuple(order), tuple(records), (*problems, *other, *older))


def read_result(text: str) -> Result:
    """A result from its JSON, which is what its writer wrote and says nothing impossible; `BadData` otherwise."""
    try:
        content = json.loads(text)
    except ValueError as error:
        raise BadData(f"half-finished or damaged, no JSON ({error}). Delete it and run again") from error
    if not isinstance(content, dict):
        raise BadData(f"no result: it holds a {type(content).__name__}, not an object")
    result = Result.from_json(content)
    if "seal" in content and content["seal"] != seal(content):
        raise EditedResult("its content is not what was written: its seal does not fit. Score the predictions again")
    if wrong := contradictions(result):
        raise EditedResult(f"it contradicts itself: {'; '.join(wrong)}. Score the predictions again")
    return result


class EditedResult(BadData):
    """A result file whose numbers are not those that were written."""


def contradictions(result: Result) -> list[str]:
    """What cannot be true of a score that was computed; empty for a result as it should be."""
    if odd := _of_wrong_type(result):
        return [f"{', '.join(odd)}: not of the type that is written"]
    if result.metric not in result.overall or "best_constant" not in result.floors:
        return [f"it has no {result.metric} or no best constant"]
    wrong = [
        f"{name} {estimate.value:g} [{estimate.low:g}, {estimate.high:g}] is no score"
        for name, estimate in result.overall.items()
        if not _possible(name, estimate)
    ]
    scored, expected = result.coverage["scored"], result.coverage["expected"]
    if not 0 <= scored <= expected or result.score.n > expected:
        wrong.append(f"{scored} scored of {expected} expected, n = {result.score.n}")
    if result.beats_floor.verdict not in VERDICTS:
        wrong.append(f"verdict {result.beats_floor.verdict!r}")
    sign = 1 if result.higher_is_better else -1
    margin = sign * (result.score.value - result.floors["best_constant"].value)
    if not math.isclose(margin, result.beats_floor.difference, abs_tol=TOLERANCE) and not math.isnan(margin):
        wrong.append(f"score minus floor is {margin:.6g}, it says {result.beats_floor.difference:.6g}")
    return wrong


def _of_wrong_type(result: Result) -> list[str]:
    """Fields whose values are not what a run writes, so that nothing later stumbles over them."""
    trees = ("options", "dataset", "model", "stamp", "coverage", "overall", "floors", "groups", "skipped_groups")
    if odd := [name for name in trees if not isinstance(getattr(result, name), Mapping)]:
        return odd
    estimates = [*result.overall.values(), *(e for group in result.groups.values() for e in group.values.values())]
    gaps = [group.gap for group in result.groups.values()]
    checks = {
        "a name": all(
            isinstance(text, str) and text
            for text in (result.task, result.metric, result.protocol, result.model.get("name"))
        ),
        "a text": all(isinstance(text, str) for text in (result.unit, result.variant, *result.warnings)),
        "a flag": all(isinstance(flag, bool) for flag in (result.collapsed, result.higher_is_better))
        and result.seen_in_pretraining in (True, False, None),
        "a number": all(
            _number(value)
            for kept in (*estimates, *gaps, result.beats_floor)
            for value in (getattr(kept, "value", 0.0), kept.low, kept.high, getattr(kept, "difference", 0.0))
        )
        and all(_number(floor.value) for floor in result.floors.values()),
        "a count": all(_count(n) for e in estimates for n in (e.n, e.n_patients))
        and all(_count(result.coverage.get(name)) for name in ("scored", "expected")),
        "a reason": all(isinstance(kept.reason, str) for kept in (*estimates, *gaps, *result.floors.values())),
        "an answer": all(isinstance(f.prediction, (str, int, float, type(None))) for f in result.floors.values()),
        "a group": all(isinstance(group.worst, (str, type(None))) for group in result.groups.values()),
    }
    return [name for name, fine in checks.items() if not fine]


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _possible(metric: str, estimate: Estimate) -> bool:
    top = 1 + TOLERANCE if metric in FRACTIONS else math.inf
    bottom = -TOLERANCE if metric in FRACTIONS or metric == "mae" else -math.inf
    inside = all(math.isnan(v) or bottom <= v <= top for v in (estimate.value, estimate.low, estimate.high))
    return inside and not estimate.low > estimate.high and 0 <= estimate.n_patients <= estimate.n


def _read(path: Path, name: str, found: _Found) -> None:
    """One file, as an entry, a record or a problem."""
    try:
        text = path.read_text("utf-8")
        if f'"kind": "{KIND}"' in text[:200]:
            found.records.append((path, Record.load(path)))
            return
        result = read_result(text)
    except EditedResult as error:
        found.problems.append(Problem(name, "edited by hand", str(error)))
    except BadData as error:
        kind = "another schema" if "cannot be read" in str(error) else "unreadable"
        found.problems.append(Problem(name, kind, str(error)))
    except (OSError, UnicodeDecodeError) as error:
        found.problems.append(Problem(name, "unreadable", f"it cannot be read: {error}"))
    else:
        answers = predictions_path(path)
        found.entries.append(Entry(path, result, answers if answers.is_file() else None))


def _unfinished(folder: Path) -> list[Problem]:
    """Answers without a score, and files that were being written when a run stopped."""
    advice = "Run the line that made it again: it goes on where it stopped"
    lone = [
        Problem(path.relative_to(folder).as_posix(), "half-finished", f"answers without a score. {advice}")
        for path in sorted(folder.rglob("*__*.predictions.parquet"))
        if not path.with_name(path.name.replace(".predictions.parquet", ".json")).is_file()
    ]
    return lone + [
        Problem(path.relative_to(folder).as_posix(), "half-finished", f"a file that was never finished. {advice}")
        for path in sorted(folder.rglob(".*__*.tmp"))
    ]


def edition(result: Result) -> tuple:
    """What has to be the same for two results to be ranked together: data, its digest, the units asked, the metric."""
    facts = result.dataset
    return (
        str(facts.get("version") or ""),
        str(facts.get("digest") or ""),
        bool(facts.get("twin")),
        None if facts.get("limit") is None else str(facts["limit"]),
        result.metric,
        result.unit,
    )


def edition_words(key: tuple) -> str:
    """An edition for a reader."""
    version, digest, twin, limit, metric, unit = key
    words = [f"version {version or 'unknown'}", f"digest {digest[:12] or 'unknown'}"]
    words += ["synthetic twin"] * twin + ([f"first {limit} patients"] if limit else [])
    return ", ".join([*words, f"{metric} {unit}".strip()])


def _one_edition(entries: list[Entry]) -> tuple[list[Entry], list[Problem]]:
    """The edition of each task that counts: real before synthetic, whole before part, then the one with most results."""
    by_task: dict[str, list[Entry]] = {}
    for entry in entries:
        by_task.setdefault(entry.result.task, []).append(entry)
    kept, problems = [], []
    for task, own in by_task.items():
        count = Counter(edition(entry.result) for entry in own)
        chosen = min(
            count, key=lambda key: (key[2], key[3] is not None, -count[key], [-ord(c) for c in key[0]], str(key))
        )
        for entry in own:
            found = edition(entry.result)
            if found == chosen:
                kept.append(entry)
                continue
            what = f"scored on {edition_words(found)}; ranked here: {edition_words(chosen)}. Such scores cannot be compared"
            problems.append(Problem(str(entry.path), "other data", what, f"{entry.setting} on {task}"))
    return kept, problems


def _newest(entries: list[Entry]) -> tuple[list[Entry], list[Problem]]:
    """Of results of one model, task, protocol and way of preprocessing the newest."""
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        result = entry.result
        facts = (result.task, protocol_name(result), dict(result.model), dict(result.options).get("seed"))
        groups.setdefault(json.dumps(facts, sort_keys=True, default=str), []).append(entry)
    kept, problems = [], []
    for own in groups.values():
        *older, last = sorted(own, key=lambda entry: (str(entry.result.stamp.get("date", "")), str(entry.path)))
        kept.append(last)
        for entry in older:
            what = f"a newer result of the same model, revision and task is ranked: {last.path}"
            problems.append(Problem(str(entry.path), "older run", what, f"{entry.setting} on {entry.result.task}"))
    return kept, problems
