"""Represent a visitor's settings as parameters in the address."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, get_type_hints

from cardiobench.leaderboard import model_page, table
from cardiobench.leaderboard.boards import conditions, entries_of
from cardiobench.leaderboard.choice import NOT_STATED, SIZES, Choice, licences
from cardiobench.results.collect import Collection

Options = dict[str, list[tuple[str, str]]]
"""Mapping from field name to labels and values of its choices."""


@dataclass(frozen=True)
class BoardState:
    """Settings of the page; field names equal the parameters in the address.

    Attributes:
        suite: Name of the suite.
        board: Condition of the board.
        protocol: Protocol and variant; empty for all.
        search: Part of a model name.
        modality: Modality, "echo" or "ecg"; empty for both.
        licence: Licence of the weights; empty for all.
        size: Size class; empty for all.
        unseen: Whether to exclude scores on data seen in pretraining.
        above: Whether to show only scores above the floor.
        kind: Name of the overview table.
        task: Name of the task.
        model: Name of the model whose page is shown.
        heat: Whether to show the overview as a heat map.
    """

    suite: str = ""
    board: str = ""
    protocol: str = ""
    search: str = ""
    modality: str = ""
    licence: str = ""
    size: str = ""
    unseen: bool = False
    above: bool = False
    kind: str = ""
    task: str = ""
    model: str = ""
    heat: bool = False

    @property
    def choice(self) -> Choice:
        """Row filter."""
        return Choice(
            self.search,
            self.protocol,
            self.above,
            self.board,
            self.modality,
            self.licence,
            self.size,
            self.unseen,
        )


LONGEST = 200
"""Maximum number of characters of a value."""
NAMES = tuple(field.name for field in fields(BoardState))


def settle(views: Mapping[str, Collection], given: Mapping[str, Any]) -> tuple[BoardState, Options]:
    """Return a state with valid values, and the remaining choices.

    Args:
        views: Mapping from suite to results.
        given: Mapping from field to value; invalid values are replaced by the first choice.
    """
    flags = {name for name, kind in get_type_hints(BoardState).items() if kind is bool}
    known: dict[str, Any] = {
        name: str(given[name]).lower() == "true" if name in flags else str(given[name])[:LONGEST]
        for name in NAMES
        if given.get(name) is not None
    }
    state = BoardState(**known)
    options: Options = {}

    def keep(name: str, values: list[tuple[str, str]]) -> None:
        nonlocal state
        options[name] = values
        if getattr(state, name) not in {value for _, value in values}:
            first: dict[str, Any] = {name: values[0][1] if values else ""}
            state = replace(state, **first)

    keep("suite", [(name or table.NO_SUITE, name) for name in views])
    view = views[state.suite]
    keep("board", _same(conditions(view)))
    entries = entries_of(view, state.board)
    keep("protocol", _any(sorted({entry.result.label for entry in entries})))
    keep("modality", _any(["echo", "ecg"]))
    keep("licence", _any(licences(entries)))
    keep("size", _any([*SIZES, "no network", NOT_STATED]))
    keep("kind", _same(table.kinds(replace(view, entries=tuple(entries)))))
    keep("task", _same(table.tasks_of(view.entries)))
    keep("model", _same(model_page.models(view)))
    return state, options


def replaced(given: Mapping[str, Any], state: BoardState) -> list[str]:
    """Return a sentence for each name in an address that the board does not have, such as a model of another suite.

    Args:
        given: Mapping from field to value, as for `settle`.
        state: The state that is shown.
    """
    where = f"the suite {state.suite}" if state.suite else "these results"
    return [
        f"There is no {name} {str(given[name])[:LONGEST]!r} in {where}; {getattr(state, name) or 'none'} is shown."
        for name in ("suite", "task", "model")
        if given.get(name) and str(given[name]) != getattr(state, name)
    ]


def _same(names: list[str]) -> list[tuple[str, str]]:
    return [(name, name) for name in names]


def _any(names: list[str]) -> list[tuple[str, str]]:
    return [("all", ""), *_same(names)]
