"""Format results for tables; no other module rounds numbers."""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from cardiobench.core.errors import first_n
from cardiobench.metrics.number import Number
from cardiobench.results.analysis_result import AnalysisResult
from cardiobench.results.context import ABSENT_CLASS
from cardiobench.results.record import EMBEDDINGS
from cardiobench.results.score_result import OLDER_RULES, Breakdown, Estimate, ScoreResult
from cardiobench.results.verdict import Verdict

FLOOR_MEANING = "the best score reachable on average without looking at the recording, by a constant or by guessing"
"""Definition shown beside every floor in the report, the leaderboard and the command line."""

EARLIER = "taken from an earlier run"
"""Note on embeddings and results of an earlier run."""

ELSEWHERE = "Predictions and embeddings from elsewhere are ranked separately and shown as references beside the models."
"""Note on external predictions in the report and the leaderboard."""

REUSED = "computed by somebody else"
"""Mark of results taken from a dataset of results; its flag names the owner."""

RUN_BY = " (run by "
"""Separator between model and account in the names of submitted results; no model id contains it."""

OWN_DATA = "own data"
"""Flag of results on private data of the user."""

COLUMNS = ("task", "model", "protocol", "metric", "score", "95 % CI", "floor", "verdict", "n", "coverage", "flags")


def number(value: float, result: ScoreResult) -> str:
    """Format a value of the ranking metric with two decimals: fractions in percent, measurements in their unit."""
    return result.number().text(value)


def metric_name(result: ScoreResult) -> str:
    """Format the name, unit and better direction of the ranking metric."""
    unit = result.number().shown_unit(result.unit)
    return f"{result.metric} {unit} {'↑' if result.higher_is_better else '↓'}".replace("  ", " ")


def interval(estimate: Estimate, result: ScoreResult) -> str:
    """Format the 95 % interval of a score; "none" if it is undefined."""
    return ends(estimate.low, estimate.high, result)


def difference(value: float, result: ScoreResult) -> str:
    """Format a difference of two values of the ranking metric with its unit; percentages differ by points."""
    return result.number().difference(value, result.unit)


def difference_with_ends(value: float, low: float, high: float, result: ScoreResult) -> str:
    """Format a difference with the ends of its interval and its unit."""
    unit = result.number().difference_unit(result.unit)
    return f"{number(value, result)} [{number(low, result)}, {number(high, result)}] {unit}".rstrip()


def ends(low: float, high: float, result: ScoreResult) -> str:
    """Format the ends of a 95 % interval; "none" if they are undefined."""
    return "none" if math.isnan(low) else f"{number(low, result)} – {number(high, result)}"


def p_value(p: float) -> str:
    """Format a p-value with two digits, "< 0.001" below that, and "–" for NaN."""
    return "–" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.2g}"


def gap_text(breakdown: Breakdown, result: ScoreResult) -> str:
    """Format the gap and the expected gap, with the difference for two groups, or the reason why they are missing."""
    gap = breakdown.gap
    if math.isnan(gap.value):
        return f"no gap: {gap.reason}"
    text = f"gap {difference(gap.value, result)}"
    if not math.isnan(gap.expected):
        text += f", {number(gap.expected, result)} expected, excess {number(gap.excess, result)}, p = {p_value(gap.p_adjusted)}".replace(
            "= <", "<"
        )
    if not math.isnan(gap.low):
        first, second = breakdown.values
        ends = difference_with_ends(gap.difference, gap.low, gap.high, result)
        text += f"; {first} minus {second}, beyond what their mix explains: {ends}"
    return text + ("; a difference" if gap.shown else "; no difference shown")


def worst_group(breakdown: Breakdown, result: ScoreResult) -> str:
    """Return the worst group; empty if the gap is undefined or rounds to zero."""
    gap = breakdown.gap.value
    return "" if math.isnan(gap) or number(gap, result) == number(0.0, result) else breakdown.worst


def floor(result: ScoreResult) -> str:
    """Format the floor."""
    return "none" if math.isnan(result.floor.value) else number(result.floor.value, result)


def verdict(result: ScoreResult) -> str:
    """Return the verdict, marked if exploratory, or a note that the result must be scored again."""
    if result.outdated:
        former = result.verdict.former or result.verdict.word
        return f"{OLDER_RULES} (then: {former})"
    return result.verdict.word + (" (exploratory)" if result.verdict.exploratory else "")


def coverage(result: ScoreResult) -> str:
    """Return the numbers of scored and of all units in the complete release."""
    return f"{result.scored}/{'unknown' if result.expected is None else result.expected}"


def bounds(result: ScoreResult) -> str:
    """Format the worst and best case of a result with missing predictions; empty if none are missing."""
    if result.bounds is None:
        return ""
    worst, best = (number(value, result) for value in (result.bounds.worst, result.bounds.best))
    total = result.expected or result.scored + result.bounds.missing
    return f"{result.bounds.missing} of {total} unanswered: between {worst} and {best} of all; judged on {worst}."


def flags(result: ScoreResult) -> list[str]:
    """Return short flags for a result; its warnings explain them."""
    marks = [f"computed by {result.computed_by}"] if result.computed_by else []
    if result.given_embeddings:
        marks.append(EMBEDDINGS)
    if result.collapsed:
        marks.append("collapsed")
    if result.seen_in_pretraining:
        marks.append("seen in pretraining")
    elif result.seen_in_pretraining is None and not result.generated:
        marks.append("pretraining data not known")
    if result.expected is None:
        marks.append("coverage unknown")
    elif result.scored < result.expected:
        marks.append("incomplete")
    if result.dataset.get("twin"):
        marks.append("synthetic twin")
    elif result.generated:
        marks.append("generated data")
    if result.dataset.get("local"):
        marks.append(OWN_DATA)
    if result.dataset.get("patient_is_record"):
        marks.append("patients not known")
    if result.dataset.get("limit"):
        marks.append(f"first {result.dataset['limit']} patients")
    return marks


def row(result: ScoreResult) -> tuple[str, ...]:
    """Return the cells of a result for `COLUMNS`."""
    estimate = result.overall[result.metric]
    pooling = result.model.get("token_pooling")
    marks = [f"pooling {pooling}"] if pooling else []  # The pooling distinguishes the rows of `--pooling mean max`.
    return (
        result.task,
        result.model["name"],
        result.label,
        metric_name(result),
        number(estimate.value, result),
        interval(estimate, result),
        floor(result),
        verdict(result),
        f"{estimate.n}" if estimate.n == estimate.n_patients else f"{estimate.n} ({estimate.n_patients} patients)",
        coverage(result),
        ", ".join([*marks, *flags(result)]) or "–",
    )


ANALYSIS_COLUMNS = ("study", "subject", "model", "found", "value", "95 % CI", "n", "flags")


def analysis_rows(record: AnalysisResult) -> list[tuple[str, ...]]:
    """Return the cells of an analysis for `ANALYSIS_COLUMNS`, one row per value."""
    models = ", ".join(model["name"] for model in record.models)
    marks = ", ".join(analysis_flags(record)) or "–"
    number, unit = record.scored_by or (Number("", None), "")
    decimals = number.decimals(unit)

    def text(value: float) -> str:
        return number.text(value, decimals)

    return [
        (
            record.protocol,
            record.subject,
            models,
            name,
            f"undefined: {found.reason}" if math.isnan(found.value) else number.with_unit(found.value, unit, decimals),
            "none" if math.isnan(found.low) else f"{text(found.low)} – {text(found.high)}",
            f"{found.n}" if found.n else "–",
            marks,
        )
        for name, found in record.values.items()
    ]


def analysis_flags(record: AnalysisResult) -> list[str]:
    """Return short flags for an analysis: datasets seen in pretraining and incomplete releases."""
    seen = [name for name, saw in record.seen_in_pretraining.items() if saw]
    twins = [data["name"] for data in record.datasets if data.get("twin")]
    limits = {data["limit"] for data in record.datasets if data.get("limit")}
    return [
        *([f"seen in pretraining: {', '.join(seen)}"] if seen else []),
        *([f"synthetic twin: {', '.join(twins)}"] if twins else []),
        *(f"first {limit} patients" for limit in sorted(limits)),
    ]


COLLAPSED_INFORMED = (
    "collapsed, and yet carries information: the answers are (nearly) the same for every recording, but the small differences "
    "between them, or the probabilities behind them, depend on the patient; a better threshold or calibration may use them"
)
"""Explanation of a row with both the flag and the verdict."""


def notes(results: Iterable[ScoreResult]) -> list[str]:
    """Return explanations of rows whose flags and verdict seem to contradict each other."""
    both = any(one.collapsed and one.verdict.word == Verdict.INFORMED and not one.outdated for one in results)
    return [COLLAPSED_INFORMED] if both else []


class GroupedWarning(NamedTuple):
    """Warning with the results that it is about.

    Attributes:
        sentence: Text.
        tasks: Tasks of these results.
        who: Model and protocol of these results; empty if they are all results of these tasks.
        results: Number of these results.
        of_answers: Whether it is about the answers of a model, as the verdict and the flags of the row are.
    """

    sentence: str
    tasks: tuple[str, ...]
    who: tuple[str, ...]
    results: int
    of_answers: bool


def warnings(results: Sequence[ScoreResult], said: Collection[str] = ()) -> list[GroupedWarning]:
    """Return the distinct warnings of results, each with the results that have it.

    Args:
        results: Results of one or several tasks.
        said: Sentences to leave out.
    """
    about: dict[str, list[ScoreResult]] = {}
    for result in ordered(tell_apart(results)):
        for sentence in _sentences(result):
            if sentence not in said:
                about.setdefault(sentence, []).append(result)
    count = Counter(result.task for result in results)
    return [
        GroupedWarning(
            sentence,
            tasks := tuple(dict.fromkeys(one.task for one in found)),
            ()
            if len(found) == sum(count[task] for task in tasks)
            else tuple(dict.fromkeys(f"{one.model['name']} {one.label}" for one in found)),
            len(found),
            any(_of_answers(sentence, one) for one in found),
        )
        for sentence, found in about.items()
    ]


def data_warnings(results: Iterable[ScoreResult]) -> dict[str, list[str]]:
    """Return by dataset the warnings that all results on its tasks share, for datasets with several tasks."""
    by_dataset: dict[str, list[ScoreResult]] = {}
    for result in results:
        by_dataset.setdefault(str(result.dataset.get("name")), []).append(result)
    shared: dict[str, list[str]] = {}
    for name, found in by_dataset.items():
        if len({one.task for one in found}) > 1:
            common = set.intersection(*(set(_sentences(one)) for one in found))
            shared[name] = [
                one
                for one in _sentences(found[0])
                if one in common and not any(_of_answers(one, each) for each in found)
            ]
    return {name: sentences for name, sentences in shared.items() if sentences}


def warning_lines(results: Sequence[ScoreResult]) -> list[str]:
    """Return one line per warning: missing predictions, then what most results share, then what is about the answers."""
    tasks: dict[str, list[str]] = {}
    for task in dict.fromkeys(one.task for one in ordered(tell_apart(results))):
        tasks.setdefault(task.partition("/")[0], []).append(task)
    lines = [
        f"{one.task}: {bounds(one)} ({one.model['name']} {one.label})" for one in results if one.bounds is not None
    ]
    for one in sorted(warnings(results), key=lambda one: (one.of_answers, -one.results)):
        who = f" ({first_n(one.who)})" if one.who else ""
        lines.append(f"{_scope(one.tasks, tasks)}: {one.sentence}{who}")
    return lines


def analysis_warning_lines(analyses: Iterable[AnalysisResult]) -> list[str]:
    """Return one line per distinct warning of analyses, with their protocols, subjects and models."""
    about: dict[str, list[AnalysisResult]] = {}
    for one in analyses:
        for sentence in dict.fromkeys(one.warnings):
            about.setdefault(sentence, []).append(one)
    return [
        f"{first_n(dict.fromkeys(f'{one.protocol} {one.subject}' for one in found))}: {sentence} "
        f"({first_n(dict.fromkeys(str(model['name']) for one in found for model in one.models))})"
        for sentence, found in sorted(about.items(), key=lambda item: -len(item[1]))
    ]


def _scope(affected: Sequence[str], tasks: Mapping[str, Sequence[str]]) -> str:
    """Name tasks, by their dataset if they are all of its tasks."""
    names: list[str] = []
    for dataset, members in tasks.items():
        here = [task for task in members if task in affected]
        names += [dataset] if len(here) == len(members) > 1 else here
    whole = len(affected) == sum(map(len, tasks.values())) and len(names) > 1
    return "all tasks" if whole else first_n(names)


def _sentences(result: ScoreResult) -> list[str]:
    """Return the distinct warnings of a result, with all absent classes in one."""
    absent = [one.removeprefix(ABSENT_CLASS) for one in result.warnings if one.startswith(ABSENT_CLASS)]
    joined = f"{ABSENT_CLASS}{', '.join(absent)}"
    return list(dict.fromkeys(joined if one.startswith(ABSENT_CLASS) else one for one in result.warnings))


def _of_answers(sentence: str, result: ScoreResult) -> bool:
    told = result.verdict.sentence
    return sentence.startswith("collapsed: ") or bool(told and told in sentence)


def ordered(results: list[ScoreResult]) -> list[ScoreResult]:
    """Sort results by task and rank; undefined scores come last, followed by external results."""

    def key(result: ScoreResult):
        value = result.overall[result.metric].value
        worse = math.inf if math.isnan(value) else (-value if result.higher_is_better else value)
        elsewhere = result.external + (result.external or result.given_embeddings)
        return result.task, elsewhere, worse, result.model["name"], result.protocol, result.variant

    return sorted(results, key=key)


def tell_apart(results: Sequence[ScoreResult]) -> list[ScoreResult]:
    """Return the results with one name for each local model: that of its newest result.

    A local model is its content, which the revision states; folders of the same content are one model. The revision is
    added to a name that different local models share.
    """
    newest: dict[tuple[str, str], str] = {}
    for one in sorted(results, key=lambda one: (str(one.stamp.get("date", "")), str(one.model["name"]))):
        if one.model.get("local"):
            newest[_content(one)] = str(one.model["name"])
    count = Counter(newest.values())

    def renamed(result: ScoreResult) -> ScoreResult:
        if not result.model.get("local"):
            return result
        name = newest[_content(result)]
        return _with_model_name(result, name if count[name] == 1 else f"{name}@{_short_revision(result)}")

    return [renamed(result) for result in results]


def _content(result: ScoreResult) -> tuple[str, str]:
    """Return the revision of a local model, and the account that submitted the result."""
    return str(result.model.get("revision")), str(result.model["name"]).partition(RUN_BY)[2]


def _with_model_name(result: ScoreResult, name: str) -> ScoreResult:
    return result if name == result.model["name"] else replace(result, model={**result.model, "name": name})


def model_labels(models: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of models, with the revision, pooling, variant or precision in which those of one name differ.

    Args:
        models: Facts of models, as in records.
    """
    by_name: dict[str, list[dict[str, str]]] = {}
    told = [_settings(model) for model in models]
    for model, settings in zip(models, told, strict=True):
        by_name.setdefault(str(model["name"]), []).append(settings)
    labels = []
    for model, settings in zip(models, told, strict=True):
        same = by_name[name := str(model["name"])]
        differing = [value for key, value in settings.items() if len({one[key] for one in same}) > 1]
        labels.append(" ".join(filter(None, (name, *differing))))
    return labels


def _settings(model: Mapping[str, Any]) -> dict[str, str]:
    steps = model.get("preprocessing") or {}
    pooling, others = model.get("token_pooling"), {key: steps.get(key) for key in ("variant", "precision")}
    values = {"revision": str(model.get("revision") or "")[:7], "pooling": pooling, **others}
    return {key: str(value or "") for key, value in values.items()}


def _short_revision(result: ScoreResult) -> str:
    return str(result.model.get("revision"))[:7]


_MARKDOWN = str.maketrans(
    {**{sign: f"\\{sign}" for sign in "\\`*_[]|#~"}, "&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;", "$": "&#36;"}
)
_ADDRESS = re.compile(r"(?<=\w):(?=//)|(?<=\bwww)\.", re.IGNORECASE)
"""Signs that make a link of a plain address."""


def markdown_text(text: str) -> str:
    """Escape text for one line in a Markdown table."""
    return _ADDRESS.sub(lambda sign: f"&#{ord(sign[0])};", " ".join(str(text).split()).translate(_MARKDOWN))


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table with escaped cells."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(markdown_text(cell) for cell in cells) + " |" for cells in rows]
    return "\n".join(lines) + "\n"


def markdown(results: list[ScoreResult]) -> str:
    """Format results as a Markdown table."""
    return markdown_table(COLUMNS, (row(result) for result in ordered(results)))
