"""Facts that results state about a study, by topic: value in words, for the checklists and the methods."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cardiobench.data import catalog
from cardiobench.data.spec import DatasetSpec
from cardiobench.report.overview import find_task
from cardiobench.results import formatting
from cardiobench.results.score_result import ScoreResult
from cardiobench.stats.estimates import METHODS

MOST = 4
"""Number of different values that are named."""


def facts(results: Sequence[ScoreResult]) -> dict[str, str]:
    """Return a mapping from topic to what the results state about it; topics without a statement are left out."""
    found = {topic: _several(map(state, results)) for topic, state in STATEMENTS.items()}
    return {topic: text for topic, text in found.items() if text}


def _several(texts: Iterable[str]) -> str:
    different = [text for text in dict.fromkeys(texts) if text]
    more = f"; and {len(different) - MOST} more" if len(different) > MOST else ""
    return "; ".join(different[:MOST]) + more


def spec_of(result: ScoreResult) -> DatasetSpec | None:
    """Return the spec of the dataset of a result, if it is known here."""
    name = result.task.partition("/")[0]
    return catalog.spec(name) if name in catalog.list_datasets() else None


def words(value: Any) -> str:
    """Return settings as words: a mapping as `name value`, a sequence separated by commas."""
    if isinstance(value, Mapping):
        return ", ".join(f"{str(name).replace('_', ' ')} {words(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return "/".join(words(one) for one in value)
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)


def _data(result: ScoreResult) -> str:
    spec, facts = spec_of(result), result.dataset
    title = spec.title if spec else str(facts.get("name", ""))
    version = f", version {facts['version']}" if facts.get("version") else ""
    return f"{title}{version}" + (f", digest {facts['digest']}" if facts.get("digest") else "")


def _access(result: ScoreResult) -> str:
    spec = spec_of(result)
    return f"{spec.title}: {spec.access or 'no page'}, {spec.licence}" if spec else ""


def _exclusions(result: ScoreResult) -> str:
    task = find_task(result.task)
    kept = [f"{name} in {', '.join(values)}" for name, values in task.where.items()] if task else []
    left_out = result.dataset.get("left_out")
    parts = [
        f"units of {result.task} with a label",
        *kept,
        *([f"{left_out} rows left out at adoption"] if left_out else []),
    ]
    return ", ".join(parts) if kept or left_out else ""


def _outcome(result: ScoreResult) -> str:
    task = find_task(result.task)
    if task is None:
        return ""
    what = f"classes {', '.join(task.classes[:8])}" if task.classes else (f"in {task.unit}" if task.unit else task.kind)
    return f"{result.task}: {what}" + (f" ({task.description})" if task.description else "")


def _input(result: ScoreResult) -> str:
    given = result.model.get("given")
    condition = f", {result.input_condition}" if result.input_condition else ""
    return f"{result.model['name']}: the recording" + (f" and {', '.join(given)}" if given else "") + condition


def _preprocessing(result: ScoreResult) -> str:
    steps = result.model.get("preprocessing")
    return f"{result.model['name']}: {words(steps)}" if steps else ""


def _size(result: ScoreResult) -> str:
    part = "all splits, out of fold" if result.out_of_fold else "the test split of the release"
    return f"{result.task}: {result.score.n_patients} patients, {part}"


def _missing(result: ScoreResult) -> str:
    complete = "none missing" if result.scored == result.expected else formatting.bounds(result)
    return f"{result.task}: {formatting.coverage(result)} units scored, {complete or 'missing ones count as wrong in the verdict'}"


def _split(result: ScoreResult) -> str:
    if result.out_of_fold:
        return f"{result.task}: out of fold, each patient predicted by a model that has not seen the patient"
    fitted = result.options.get("fitted_on")
    return f"{result.task}: fixed split of the benchmark" + (
        f", fitted on {fitted} units" if fitted is not None else ""
    )


def _disjoint(result: ScoreResult) -> str:
    return "recordings (patients not known)" if result.dataset.get("patient_is_record") else "patients"


def _model(result: ScoreResult) -> str:
    pooling = f", {result.model['pooling']} pooling" if result.model.get("pooling") else ""
    return f"{result.model['name']}{pooling}, {result.label}"


def _revision(result: ScoreResult) -> str:
    return f"{result.model['name']} at revision {result.model['revision']}" if result.model.get("revision") else ""


def _protocol(result: ScoreResult) -> str:
    shown = {name: value for name, value in result.options.items() if not isinstance(value, Mapping) and value != ""}
    return f"{result.label} with {words(shown)}" if shown else result.label


def _selection(result: ScoreResult) -> str:
    chosen = result.options.get("penalty_chosen_on")
    return f"{result.label}: penalty chosen on {chosen}" if chosen else ""


def _cut(result: ScoreResult) -> str:
    chosen = result.options.get("cut_chosen_on")
    return f"{result.label}: chosen on {chosen}" if chosen else ""


def _imbalance(result: ScoreResult) -> str:
    weight = result.options.get("class_weight")
    return f"{result.label}: class weight {weight}" if weight else ""


def _metrics(result: ScoreResult) -> str:
    others = [name for name in result.overall if name != result.metric]
    return f"{result.task}: {result.metric} ranks" + (f"; also {', '.join(others)}" if others else "")


def _statistics(result: ScoreResult) -> str:
    method = METHODS.get(result.score.method, "")
    test = f"; information test: {result.verdict.test}" if result.verdict.test else ""
    family = f", corrected for the family {result.verdict.family}" if result.verdict.family else ", exploratory"
    return f"95 % intervals over patients for {result.metric} ({method or result.score.reason}){test}{family}"


def _groups(result: ScoreResult) -> str:
    shown = [f"{name}: {formatting.gap_text(breakdown, result)}" for name, breakdown in result.groups.items()]
    return f"{result.model['name']}, {result.label}, {result.task}: {'; '.join(shown)}" if shown else ""


def _participants(result: ScoreResult) -> str:
    """Return the number of patients of each group, for groups that are scored."""
    shown = [
        f"{name}: "
        + ", ".join(f"{group} {one.n_patients} patients (n = {one.n})" for group, one in found.values.items())
        for name, found in result.groups.items()
    ]
    return f"{result.task}, test split, by {'; '.join(shown)}" if shown else ""


def _output(result: ScoreResult) -> str:
    task = find_task(result.task)
    return f"{result.task}: {'probabilities of classes, or classes' if task.classes else task.kind}" if task else ""


def _pretraining(result: ScoreResult) -> str:
    seen = {
        True: "saw the dataset in pretraining",
        False: "did not see the dataset in pretraining",
        None: "pretraining data not known",
    }
    return f"{result.model['name']}: {seen[result.seen_in_pretraining]} ({result.task})"


def _suite(result: ScoreResult) -> str:
    suite = result.stamp.get("suite")
    return f"suite {suite}, fixed in advance" if suite else ""


def _software(result: ScoreResult) -> str:
    names = ("cardiobench", "numpy", "scipy", "scikit-learn", "torch", "python")
    return ", ".join(f"{name} {result.stamp[name]}" for name in names if result.stamp.get(name))


def _counts(result: ScoreResult) -> str:
    share = result.overall.get("observed_share")
    observed = f", {100 * share.value:.1f} % with the class" if share else ""
    return f"{result.task}: n = {result.score.n} of {result.score.n_patients} patients{observed}"


def _scores(result: ScoreResult) -> str:
    ends = formatting.interval(result.score, result)
    return (
        f"{result.model['name']}, {result.label}, {result.task}: {result.metric} {formatting.number(result.score.value, result)} "
        f"({ends}), {formatting.verdict(result)}"
    )


def _floor(result: ScoreResult) -> str:
    reached = f" by {result.floor.reached_by}" if result.floor.reached_by else ""
    return f"{result.task}: floor {formatting.floor(result)}{reached}"


def _outside(result: ScoreResult) -> str:
    return "answers outside the classes count as wrong" if any("outside" in text for text in result.warnings) else ""


def _warnings(result: ScoreResult) -> str:
    return "; ".join(result.warnings)


STATEMENTS = {
    "data": _data,
    "access": _access,
    "exclusions": _exclusions,
    "outcome": _outcome,
    "input": _input,
    "preprocessing": _preprocessing,
    "size": _size,
    "missing": _missing,
    "split": _split,
    "disjoint": _disjoint,
    "model": _model,
    "revision": _revision,
    "protocol": _protocol,
    "selection": _selection,
    "cut": _cut,
    "imbalance": _imbalance,
    "metrics": _metrics,
    "statistics": _statistics,
    "groups": _groups,
    "participants": _participants,
    "output": _output,
    "pretraining": _pretraining,
    "suite": _suite,
    "software": _software,
    "counts": _counts,
    "flow": _missing,
    "scores": _scores,
    "floor": _floor,
    "outside": _outside,
    "warnings": _warnings,
}
"""Topic -> function of a result that states it; empty if the result says nothing."""
PLACES = {
    "scores": "tables.tex",
    "floor": "tables.tex",
    "counts": "tables.tex",
    "missing": "tables.tex",
    "flow": "tables.tex; `cardiobench flow` draws the diagram",
    **dict.fromkeys(
        ("access", "exclusions", "outcome", "input", "groups", "participants", "output", "suite", "outside"), ""
    ),
}
"""Topic -> file with the complete statement, empty if there is none; `methods` for all others."""
