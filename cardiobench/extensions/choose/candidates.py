"""Find models with comparable validation predictions for all tasks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cardiobench.core.errors import BadPredictions
from cardiobench.data import catalog
from cardiobench.models.cards import ModelCard, find_card
from cardiobench.report.overview import ranked
from cardiobench.results.collect import ResultEntry
from cardiobench.results.cost import Cost
from cardiobench.results.predictions_file import load_validation, load_validation_refits
from cardiobench.results.refits import NO_TRAINING
from cardiobench.tasks.answers import TableAnswers, stored_refits

NO_VALIDATION = "it has no validation predictions to base the choice on (only protocols with training write them)"


@dataclass(frozen=True)
class Candidate:
    """Model run under one protocol.

    Attributes:
        name: Name in tables, with the revision folder if a model was run in several ways.
        entries: Mapping from task to test result.
        validation: Mapping from task to validation predictions.
    """

    name: str
    entries: Mapping[str, ResultEntry]
    validation: Mapping[str, TableAnswers] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """Name of the model."""
        return str(next(iter(self.entries.values())).result.model["name"])

    @property
    def card(self) -> ModelCard | None:
        """Model card, or None if it is not available."""
        return find_card(self.model)

    @property
    def cost(self) -> Cost | None:
        """Cost on the task with the most expensive encoding, or None if no result states a cost."""
        costs = [entry.result.cost for entry in self.entries.values()]
        known = [cost for cost in costs if cost is not None]
        return max(known, key=lambda cost: cost.sort_key) if len(known) == len(costs) else None


def find_candidates(entries: Sequence[ResultEntry], tasks: Sequence[str]) -> tuple[list[Candidate], dict[str, str]]:
    """Return candidates and a mapping from excluded model to reason.

    Args:
        entries: Results of one protocol.
        tasks: Required tasks; tasks without validation predictions of any model are ignored.
    """
    grouped: dict[tuple[str, str], dict[str, ResultEntry]] = {}
    for entry in entries:
        if entry.result.task in tasks:
            key = str(entry.result.model["name"]), entry.path.parents[1].name
            grouped.setdefault(key, {})[entry.result.task] = entry
    count = Counter(model for model, _ in grouped)
    read, excluded = list[Candidate](), dict[str, str]()
    for (model, folder), of_model in sorted(grouped.items()):
        name = model if count[model] == 1 else f"{model} ({folder})"
        try:
            found = {task: answers for task, entry in of_model.items() if (answers := _validation(entry)) is not None}
        except BadPredictions as error:
            excluded[name] = str(error)
            continue
        unranked = [task for task, entry in of_model.items() if not ranked(entry.result)]
        if not found:
            excluded[name] = NO_VALIDATION
        elif unranked:
            excluded[name] = (
                f"its result on {', '.join(unranked)} is not ranked: {of_model[unranked[0]].result.verdict.sentence}"
            )
        else:
            read.append(Candidate(name, of_model, found))
    asked = [task for task in tasks if any(task in one.validation for one in read)]
    return _of_same_units(read, asked, excluded), excluded


def _validation(entry: ResultEntry) -> TableAnswers | None:
    frame = load_validation(entry.result, entry.path)
    if frame is None:
        return None
    task, record = catalog.task(entry.result.task), entry.result.refits
    answers: TableAnswers = task.rules.stored_answers(frame, task, len(frame), str(entry.result.model["name"]))
    columns = load_validation_refits(entry.result, entry.path)
    if record is None or not (columns or record.varies == NO_TRAINING):
        return answers
    return replace(answers, refits=stored_refits(record, columns, frame["id"]))


def _of_same_units(read: Sequence[Candidate], tasks: Sequence[str], excluded: dict[str, str]) -> list[Candidate]:
    """Keep candidates with the same validation units for every task; exclude the others."""
    kept = list(read)
    for task in tasks:
        units = {one.name: frozenset(one.validation[task].frame["id"]) for one in kept if task in one.validation}
        usual = Counter(units.values()).most_common(1)[0][0] if units else frozenset()
        for one in list(kept):
            if task not in one.validation:
                excluded[one.name] = f"it has no answers for the validation patients of {task}"
            elif units[one.name] != usual:
                found = f"{len(units[one.name])} validation units of {task}, others {len(usual)}"
                excluded[one.name] = f"it has predictions for {found}: run it on the same recordings"
            else:
                continue
            kept.remove(one)
    return kept
