"""Compare results with references on the same task, such as training from scratch or the model's own probe."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cardiobench.core.errors import CardioBenchError
from cardiobench.core.extensions import contributions, resolve
from cardiobench.report.contests import predictions_of
from cardiobench.report.overview import ranked
from cardiobench.results import formatting as tables
from cardiobench.results.anchors import anchors
from cardiobench.results.collect import ResultEntry
from cardiobench.results.score_result import ScoreResult
from cardiobench.scoring.compare import Comparison, compare
from cardiobench.scoring.ranks import correct_together

WORDS = {
    "better": "better than",
    "worse": "worse than",
    "answers differ": "with answers that differ from those of",
    "equivalent": "equivalent to",
    "undecided": "not distinguishable from",
    "too few to say": "too few patients to be compared with",
}
ANSWERS_EQUIVALENT = "with answers equivalent to those of"
MAX_PAIRS = 60
"""Maximum number of comparisons computed for a page."""


@dataclass(frozen=True)
class Beside:
    """Comparison of one result with a reference on the same patients.

    Attributes:
        result: Result of the model.
        text: Sentence with the paired difference and its 95 % interval.
        failed: Whether the two could not be compared; the text then has the reason.
    """

    result: ScoreResult
    text: str
    failed: bool = False

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(self.result.model["name"])


def reference_of(protocol: str) -> str:
    """Return the reference name that a protocol provides; empty for other or uninstalled protocols."""
    return _said(protocol, "reference")


def _trained_as(result: ScoreResult) -> list[str]:
    """Return the model of a reference, and numbers among its options that differ from the recipe."""
    recipe = resolve(contributions("protocols")[result.protocol])().get_params()
    chosen = {name: result.options.get(name, usual) for name, usual in recipe.items() if name != "seed"}
    changed = [
        f"{name}={value}" for name, value in chosen.items() if isinstance(value, (int, float)) and value != recipe[name]
    ]
    return [str(result.model["name"]), *changed]


def _said(protocol: str, attribute: str) -> str:
    """Return a text attribute of an extension's protocol class; empty for other protocols."""
    provided = contributions("protocols").get(protocol)
    return getattr(resolve(provided), attribute) if provided else ""


def beside_references(entries: Sequence[ResultEntry], models: Collection[str] = ()) -> list[Beside]:
    """Compare every ranked result with the references of its task and with the protocol of its model that it names.

    Args:
        entries: Results and references.
        models: Names of the models to compare; empty for all.

    Returns:
        Comparisons, whose p-values are corrected together, and published scores of references; empty without references. If there
        are too many pairs, a sentence for each model says so.
    """
    usable = [entry for entry in entries if entry.predictions and ranked(entry.result) and not entry.result.external]
    protocols = {entry.result.protocol for entry in usable}
    names = {protocol: reference_of(protocol) for protocol in protocols}
    partners = {protocol: _said(protocol, "beside") for protocol in protocols}
    of_task: dict[str, list[ResultEntry]] = {}
    for entry in usable:
        of_task.setdefault(entry.result.task, []).append(entry)
    references = [entry for entry in usable if names[entry.result.protocol]]
    pairs = [
        (entry, other, f"{names[other.result.protocol]} ({', '.join(_trained_as(other.result))})")
        for other in references
        for entry in of_task[other.result.task]
        if entry.result.input_condition == other.result.input_condition and not names[entry.result.protocol]
    ]
    pairs += [
        (entry, other, f"its own {other.result.label}")
        for entry in usable
        if partners[entry.result.protocol]
        for other in of_task[entry.result.task]
        if other.result.label == partners[entry.result.protocol] and _same_model(entry.result, other.result)
    ]
    pairs = [pair for pair in pairs if _is_of(pair[0], models)]
    compared = _compared(pairs) if len(pairs) <= MAX_PAIRS else _too_many(pairs)
    named = [entry.result for entry in references if _is_of(entry, models)]
    return compared + [found for result in named if (found := _published(result))]


def _is_of(entry: ResultEntry, models: Collection[str]) -> bool:
    return not models or entry.result.model["name"] in models


def _published(result: ScoreResult) -> Beside | None:
    """Return a sentence with published reference scores on the same task and metric, or None.

    Published scores do not apply to generated recordings, subsets of patients, or modified recordings.
    """
    if result.generated or result.dataset.get("limit") or result.input_condition:
        return None
    word = resolve(contributions("protocols")[result.protocol]).published_as
    known = [one for one in anchors(result.task).published if one.metric == result.metric and one.protocol == word]
    if not word or not known:
        return None
    texts = []
    for one in known:
        condition = "; ".join(filter(None, (one.source, one.condition)))
        texts.append(f"{' '.join(filter(None, (one.model, one.printed, one.interval)))} ({condition})")
    head = f"{result.task}, {result.label}: {tables.number(result.score.value, result)} here; published as {word}: "
    return Beside(result, head + ", ".join(texts))


def _same_model(one: ScoreResult, other: ScoreResult) -> bool:
    """Return whether two results on one task have the same model, loaded in the same way."""
    return all(
        one.model.get(fact) == other.model.get(fact) for fact in ("name", "revision", "token_pooling", "preprocessing")
    )


Pair = tuple[ResultEntry, ResultEntry, str]
"""Result, reference, and name of the reference."""


def _compared(pairs: Sequence[Pair]) -> list[Beside]:
    """Compare results with references; the p-values of all comparisons are corrected together."""
    found: list[Comparison | str] = []
    for entry, other, _ in pairs:
        try:
            found.append(compare(predictions_of(entry), predictions_of(other)))
        except CardioBenchError as error:
            found.append(str(error))
    corrected = iter(correct_together([one for one in found if isinstance(one, Comparison)]))
    return [
        _beside(entry.result, tail, one if isinstance(one, str) else next(corrected))
        for (entry, _, tail), one in zip(pairs, found, strict=True)
    ]


def _too_many(pairs: Sequence[Pair]) -> list[Beside]:
    """Say for each model that its comparisons are not computed here."""
    first = {str(entry.result.model["name"]): entry.result for entry, _, _ in reversed(pairs)}
    text = f"not compared with references here: the page has {len(pairs)} such comparisons, at most {MAX_PAIRS} are computed. Run `cardiobench compare`"
    return [Beside(result, text, failed=True) for result in first.values()]


def _beside(result: ScoreResult, tail: str, found: Comparison | str) -> Beside:
    head = f"{result.task}, {result.label}: "
    if isinstance(found, str):
        return Beside(result, f"{head}not compared with {tail}: {found}", failed=True)
    text = f"{head}{ANSWERS_EQUIVALENT if found.of_answers and found.outcome == 'equivalent' else WORDS[found.outcome]} {tail}"
    if found.outcome != "too few to say":
        metric = f"{found.metric} {'↑' if found.higher_is_better else '↓'} {found.labels}".rstrip()
        text += f"; difference in {metric}: {found.difference_text}, p = {tables.p_value(found.p_adjusted)}".replace(
            "= <", "<"
        )
    return Beside(result, text)


def markdown(entries: Sequence[ResultEntry]) -> str:
    """Return the sentences with a heading; empty without references."""
    found = beside_references(entries)
    if not found:
        return ""
    lines = [f"* {tables.markdown_text(f'{one.model}, {one.text}')}" for one in found]
    note = "Differences are paired over the same test patients and have 95 % intervals, which cover other training patients or seeds if both results have refits with the same draws. P-values are corrected for all comparisons of this list (Holm). They do not affect ranks.\n\n"
    return "## Beside references\n\n" + note + "\n".join(lines) + "\n"
