"""Build the page of one model and the number of submissions of each owner."""

import re
from html import escape

from cardiobench.leaderboard import table
from cardiobench.leaderboard.boards import Standing
from cardiobench.leaderboard.choice import Choice
from cardiobench.leaderboard.grid import BoardCell, BoardColumn, BoardTable, table_of_values
from cardiobench.models.cards import find_card
from cardiobench.report.beside_references import reference_of
from cardiobench.report.overview import ScoreCell, marks, skill
from cardiobench.report.page.naming import skill_text
from cardiobench.report.plots.style import shorten
from cardiobench.results.collect import Collection, ResultEntry, model_id
from cardiobench.results.cost import short
from cardiobench.results.formatting import floor, markdown_text, verdict

TASKS = (
    BoardColumn("place", 62, "number"),
    BoardColumn("task", 125),
    BoardColumn("score", 132, "number"),
    BoardColumn("board", 130),
    BoardColumn("protocol", 120),
    BoardColumn("floor to perfect", 100, "number"),
    BoardColumn("floor", 80),
    BoardColumn("verdict", 190),
    BoardColumn("FLOPs", 90, "number"),
)
VERSIONS = (
    BoardColumn("revision", 130),
    BoardColumn("results", 80, "number"),
    BoardColumn("last result", 105),
    BoardColumn("first result", 105),
    BoardColumn("owner", 130),
    BoardColumn("cardiobench", 120),
)
OWNERS = (
    BoardColumn("owner", 200),
    BoardColumn("submissions", 120, "number"),
    BoardColumn("most for one task", 120, "number"),
    BoardColumn("models", 100, "number"),
    BoardColumn("tasks", 100, "number"),
    BoardColumn("results", 100, "number"),
    BoardColumn("last result", 130),
)
LOCAL = "local folder"
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def models(collection: Collection) -> list[str]:
    """Return the names of all models."""
    return sorted({str(entry.result.model["name"]) for entry in collection.entries})


def heading(name: str) -> str:
    """Return a model's name as an HTML heading, linked to its page if it starts with a valid repository name."""
    repository, _, rest = name.partition(" ")
    if not REPOSITORY.fullmatch(repository) or ".." in repository:
        return f"<h2>{escape(shorten(name, table.LONG))}</h2>"
    link = f'<a href="https://huggingface.co/{repository}" rel="noopener nofollow">{escape(repository)}</a>'
    return f"<h2>{link} {escape(shorten(rest, table.LONG))}</h2>".replace(" </h2>", "</h2>")


def card_text(name: str) -> str:
    """Return a model's card as Markdown, or a note that there is none; nothing in it is of a submission."""
    card = find_card(model_id(name))
    if card is None:
        return "CardioBench has no card for this model. Its submitter is responsible for its description and training data."
    facts = {
        "Modality": " and ".join(card.modalities),
        "Licence of the weights": card.licence,
        "Access": card.access,
        "Pretraining data": card.pretraining_data,
        "Datasets seen in pretraining": card.seen_text,
        "Parameters": short(card.parameters),
    }
    listed = "\n".join(f"* **{key}**: {markdown_text(str(value))}" for key, value in facts.items())
    _, _, body = card.body.partition("\n")
    return f"{listed}\n\n{body.strip()}"


def model_tasks(collection: Collection, name: str) -> BoardTable:
    """Return the results of a model on all boards, with places among all results of each board.

    References on the same tasks, such as training from scratch, follow without a place.
    """
    rows = []
    for task in table.tasks_of(_of(collection, name)):
        own = [one for one in table.board(collection, task, Choice(name)) if one.entry.result.model["name"] == name]
        others = table.references(collection, task, Choice(condition=own[0].condition))
        rows += [_task_row(one, one.text, one.entry.result.label) for one in own]
        rows += [
            _task_row(one, table.REFERENCE, f"{result.label} ({result.model['name']})")
            for one in others
            if reference_of((result := one.entry.result).protocol) and result.model["name"] != name
        ]
    return BoardTable(TASKS, tuple(rows))


def _task_row(one: Standing, place: str, protocol: str) -> tuple[BoardCell, ...]:
    result = one.entry.result
    cell = ScoreCell(one.entry, skill(result), marks(result))
    flops = None if result.cost is None or result.cost.flops != result.cost.flops else result.cost.flops
    return (
        BoardCell(one.place.first if one.place else None, place),
        BoardCell(result.task, result.task),
        table.score_cell(result),
        BoardCell(one.condition, one.condition),
        BoardCell(protocol, protocol),
        BoardCell(None if cell.skill != cell.skill else cell.skill, skill_text(cell.skill), cell.shade),
        BoardCell(floor(result), floor(result)),
        BoardCell(verdict(result), f"{result.verdict.word.sign} {verdict(result)}"),
        BoardCell(flops, short(flops)),
    )


def versions(collection: Collection, name: str) -> BoardTable:
    """Return the revisions of a model with results, the newest first."""
    groups: dict[tuple[str, str], list[ResultEntry]] = {}
    for entry in _of(collection, name):
        key = str(entry.result.model.get("revision") or "not stated"), entry.pushed_by or LOCAL
        groups.setdefault(key, []).append(entry)
    rows = []
    for (revision, owner), entries in groups.items():
        dates = sorted(table.date_of(entry) for entry in entries)
        releases = sorted({str(entry.result.stamp.get("cardiobench") or "–") for entry in entries})
        rows.append((revision, len(entries), dates[-1], dates[0], owner, ", ".join(releases)))
    return table_of_values(VERSIONS, sorted(rows, key=lambda row: row[2], reverse=True))


def owners(collection: Collection) -> BoardTable:
    """Return the submissions of each owner; a submission is one model revision."""
    groups: dict[str, list[ResultEntry]] = {}
    for entry in collection.entries:
        groups.setdefault(entry.pushed_by or LOCAL, []).append(entry)
    rows = []
    for owner, entries in groups.items():
        results = [entry.result for entry in entries]
        revisions = {(one.model["name"], one.model.get("revision")) for one in results}
        counts = (len({one.model["name"] for one in results}), len({one.task for one in results}), len(results))
        most = max(entry.submissions for entry in entries)
        rows.append((owner, len(revisions), most, *counts, max(table.date_of(entry) for entry in entries)))
    return table_of_values(OWNERS, sorted(rows, key=lambda row: (-row[1], row[0])))


def _of(collection: Collection, name: str) -> list[ResultEntry]:
    return [entry for entry in collection.entries if str(entry.result.model["name"]) == name]
