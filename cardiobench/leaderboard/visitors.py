"""Answer events of visitors: update only the tab in view, and build tabs when they are opened."""

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cardiobench.core.io import sha256_of_json
from cardiobench.leaderboard import charts, model_page, table
from cardiobench.leaderboard.choice import Choice
from cardiobench.leaderboard.export import write_downloads
from cardiobench.leaderboard.grid import BoardTable
from cardiobench.leaderboard.heat import heat_map
from cardiobench.leaderboard.state import NAMES, BoardState, replaced, settle
from cardiobench.results.collect import Collection

TABS: Mapping[str, tuple[str, ...]] = {
    "overview": ("overview", "heat", "noise"),
    "tasks": ("about", "scores", "chart", "costs", "flops"),
    "models": ("name", "card", "model_tasks", "versions"),
    "submit": (),
    "owners": ("owners",),
    "problems": ("problems",),
}
"""Mapping from tab id to contents, which are built when the tab is opened."""
FIRST = next(iter(TABS))
CONTENTS = tuple(name for names in TABS.values() for name in names)


class Visitors:
    """Callbacks of the app, which return new component values.

    Args:
        views: Mapping from suite to results.
        reload: Function that reloads results; None for fixed results.
    """

    def __init__(self, views: Mapping[str, Collection], reload: Callable[[], Mapping[str, Collection]] | None = None):
        self._views, self._reload = views, reload
        self._written: dict[str, list[str]] = {}
        self._folder = TemporaryDirectory(prefix="cardiobench-leaderboard-")

    def changed(self, *values: Any) -> list[Any]:
        """Return the controls, the counts and the contents of the tab in view; `values` has the values of `NAMES` and the tab."""
        import gradio as gr

        *given, tab = values
        made = self._updates(dict(zip(NAMES, given, strict=True)), tab)
        # Do not overwrite the search text, because the visitor may still be typing.
        made[NAMES.index("search")] = gr.skip()
        return made

    def opened(self, asked: Mapping[str, str]) -> Any:
        """Return the controls, counts, contents and tab given by the parameters of an address."""
        import gradio as gr

        if not {*NAMES, "tab"} & set(asked):
            return gr.skip()
        tab = asked.get("tab", FIRST)
        tab = tab if tab in TABS else FIRST
        for sentence in replaced(asked, settle(self._views, asked)[0]):
            gr.Warning(escape(sentence))
        return [*self._updates(asked, tab), gr.Tabs(selected=tab), tab]

    def selected(self, tab: str, *values: Any) -> Any:
        """Return the name and contents of a tab; `values` has the values of `NAMES` and the previous tab."""
        import gradio as gr

        *given, before = values
        if tab == before:  # The first tab is selected during page creation.
            return gr.skip()
        state, _ = settle(self._views, dict(zip(NAMES, given, strict=True)))
        found = outputs(self._views[state.suite], state, tab)
        return [tab, *map(_value, found.values())]

    def loaded_again(self, *values: Any) -> list[Any]:
        """Reload the results and answer as `changed` does."""
        if self._reload is not None:
            self._views = self._reload()
            self._written.clear()
        return self.changed(*values)

    def files_of(self, suite: str) -> list[str]:
        """Return the download files of a suite, which are written once."""
        name = settle(self._views, {"suite": suite})[0].suite
        if name not in self._written:
            folder = Path(self._folder.name) / sha256_of_json(name)[:16]
            self._written[name] = list(write_downloads(self._views[name], folder).values())
        return self._written[name]

    def _updates(self, given: Mapping[str, Any], tab: str) -> list[Any]:
        import gradio as gr

        state, options = settle(self._views, given)
        made = [
            gr.Dropdown(options[name], value=getattr(state, name)) if name in options else getattr(state, name)
            for name in NAMES
        ]
        view = self._views[state.suite]
        found = outputs(view, state, tab)
        made.append(table.counts(view))
        return made + [_value(found[name]) if name in found else gr.skip() for name in CONTENTS]


def outputs(view: Collection, state: BoardState, tab: str) -> dict[str, Any]:
    """Return the contents of a tab in the order of `TABS`: tables, charts as HTML, or texts."""
    choice, task = state.choice, state.task
    if tab == "overview":
        found = None if state.heat else table.overview(view, state.kind, choice)
        return {
            "overview": found,
            "heat": heat_map(view, state.kind, choice) if state.heat else "",
            "noise": " ".join(filter(None, (table.noise(view, choice), found.note if found else ""))),
        }
    if tab == "tasks":
        return {"about": table.about(view, task) if task else "", **_task_content(view, task, choice)}
    if tab == "models":
        return {
            "name": model_page.heading(state.model) if state.model else "",
            "card": model_page.card_text(state.model) if state.model else "",
            "model_tasks": model_page.model_tasks(view, state.model),
            "versions": model_page.versions(view, state.model),
        }
    if tab == "owners":
        return {"owners": model_page.owners(view)}
    return {"problems": table.problems(view)} if tab == "problems" else {}


def _task_content(view: Collection, task: str, choice: Choice) -> dict[str, Any]:
    points = charts.points_of(view, task, choice)
    title = charts.score_title(view, task) if points else ""
    return {
        "scores": table.scores(view, task, choice),
        "chart": charts.intervals(points, title),
        "costs": table.costs(view, task, choice),
        "flops": charts.against_flops(points, title),
    }


def _value(found: Any) -> Any:
    """Return the new value of a component; None hides a table."""
    import gradio as gr

    if found is None:
        return gr.Dataframe(visible=False)
    if isinstance(found, BoardTable):
        return gr.Dataframe(found.value(), visible=True, **found.options())
    return found
