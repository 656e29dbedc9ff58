"""The gradio app. Names and notes come from strangers: every cell is text, never markup."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import MissingExtra
from cardiobench.leaderboard import table
from cardiobench.leaderboard.source import load
from cardiobench.leaderboard.submissions import UNKNOWN_TRIES
from cardiobench.report.overview import MARKS
from cardiobench.results.collect import Collection
from cardiobench.results.formatting import FLOOR_MEANING
from cardiobench.results.verdict import Verdict

if TYPE_CHECKING:
    import gradio
    import pandas

TITLE = "CardioBench leaderboard"
INTRODUCTION = (
    f"Every score stands beside its **floor**: {FLOOR_MEANING}. Above the floor: {Verdict.ABOVE.meaning}. A cell says how far a model gets "
    "from the floor (0 %) to a perfect score (100 %), then the score with its 95 % interval over patients. There is no mean over tasks: "
    "coverage says how many a row has. Results of a suite are ranked among themselves only. A place is an interval: models whose "
    f"places overlap are not told apart, and stand in alphabetical order. {UNKNOWN_TRIES}"
)
SIGNS = "\n".join(f"* {sign} {name}" for name, (sign, _) in MARKS.items())


def build(
    views: Mapping[str, Collection], reload: Callable[[], Mapping[str, Collection]] | None = None
) -> "gradio.Blocks":
    """Build the app over results.

    Args:
        views: Suite -> results that were loaded; a visitor sees one suite at a time.
        reload: Loads them again when a visitor asks for it; None for results that do not change.

    Raises:
        MissingExtra: gradio is not installed.
    """
    try:
        import gradio as gr
    except ImportError:
        raise MissingExtra("the leaderboard", "leaderboard", "gradio") from None
    current = views  # Displayed content, replaced by a reload.
    first = next(iter(current))
    view = current[first]
    kinds, tasks = table.kinds(view), table.tasks_of(view.entries)
    with gr.Blocks(title=TITLE, analytics_enabled=False) as app:
        gr.Markdown(f"# {TITLE}\n\n{INTRODUCTION}")
        with gr.Row():
            suite = gr.Dropdown(_suites(current), value=first, label="Suite", elem_id="filter-suite")
            model = gr.Textbox(label="Model", placeholder="part of a name", elem_id="filter-model")
            protocol = gr.Dropdown(_protocols(view), value="", label="Protocol", elem_id="filter-protocol")
            above = gr.Checkbox(label="only above the floor", elem_id="filter-above")
            again = gr.Button("Reload", elem_id="reload", visible=reload is not None)
        with gr.Tab("Overview"):
            kind = gr.Dropdown(kinds, value=kinds[0] if kinds else None, label="Table", elem_id="filter-kind")
            board = _frame(gr, table.overview(view, kinds[0]) if kinds else None, "Models by tasks", "overview", MODELS)
        with gr.Tab("Tasks"):
            task = gr.Dropdown(tasks, value=tasks[0] if tasks else None, label="Task", elem_id="filter-task")
            words = gr.Textbox(table.about(view, tasks[0]) if tasks else "", label="About", interactive=False)
            types = list(table.SCORES.values())
            scores = _frame(gr, table.scores(view, tasks[0]) if tasks else None, "Scores, best first", "scores", types)
            bars = _bars(gr, table.chart(view, tasks[0]) if tasks else None)
        with gr.Tab("Not ranked"):
            problems = _frame(gr, table.problems(view), "Found, and in no table", "problems", "str")
        with gr.Accordion("What the signs mean", open=False):
            gr.Markdown(SIGNS)

        def shown(suite: str, kind: str, task: str, model: str, protocol: str, above: bool) -> tuple[Any, ...]:
            view, choice = current[suite], table.Choice(model, protocol or "", above)
            return (
                table.overview(view, kind, choice),
                table.scores(view, task, choice),
                table.about(view, task) if task else "",
                _bars(gr, table.chart(view, task, choice)),
            )

        def of_suite(suite: str, kind: str, task: str, model: str, protocol: str, above: bool) -> tuple[Any, ...]:
            view = current[suite]
            kinds, tasks, protocols = table.kinds(view), table.tasks_of(view.entries), _protocols(view)
            kind, task = _still(kind, kinds), _still(task, tasks)
            protocol = _still(protocol, [value for _, value in protocols])
            lists = (
                gr.Dropdown(kinds, value=kind or None),
                gr.Dropdown(tasks, value=task or None),
                gr.Dropdown(protocols, value=protocol),
            )
            return *shown(suite, kind, task, model, protocol, above), table.problems(view), *lists

        def loaded_again(suite: str, *others: Any) -> tuple[Any, ...]:
            nonlocal current
            current = reload() if reload else current
            suite = _still(suite, list(current))
            return *of_suite(suite, *others), gr.Dropdown(_suites(current), value=suite)

        controls: list[Any] = [suite, kind, task, model, protocol, above]
        tables: list[Any] = [board, scores, words, bars]
        lists: list[Any] = [problems, kind, task, protocol]
        for control in controls[1:]:
            control.change(shown, controls, tables, api_name=False)
        suite.change(of_suite, controls, [*tables, *lists], api_name=False)
        again.click(loaded_again, controls, [*tables, *lists, suite], api_name=False)
    return app


MODELS = ["markdown"]
"""Data types of the first columns of the overview; all further ones are text."""


def _suites(views: Mapping[str, Collection]) -> list[tuple[str, str]]:
    return [(name or table.NO_SUITE, name) for name in views]


def _protocols(collection: Collection) -> list[tuple[str, str]]:
    return [("all", ""), *((name, name) for name in sorted({entry.result.label for entry in collection.entries}))]


def _still(name: str, names: Sequence[str]) -> str:
    """Return a choice if it is still there, else the first one."""
    return name if name in names else next(iter(names), "")


def _bars(gr: Any, value: "pandas.DataFrame | None") -> Any:
    """Return a chart of scores from zero upwards, the best one first."""
    top = 1.05 * value["score"].max() if value is not None and len(value) else 1.0
    order = None if value is None else value[table.MODEL].tolist()
    return gr.BarPlot(value, x=table.MODEL, y="score", sort=order, y_lim=[0, top], x_label_angle=-60, height=420)


def _frame(gr: Any, value: "pandas.DataFrame | None", label: str, name: str, types: Sequence[str] | str) -> Any:
    if value is not None and not isinstance(types, str):
        types = [*types, *["str"] * (len(value.columns) - len(types))]
    widths = (
        [f"{table.WIDTHS.get(str(column), table.TASK_WIDTH if name == 'overview' else 240)}px" for column in value]
        if value is not None
        else None
    )
    return gr.Dataframe(
        value,
        label=label,
        elem_id=name,
        interactive=False,
        datatype=types,
        column_widths=widths,
        wrap=True,
        latex_delimiters=[],
    )


def launch(
    sources: Sequence[str], *, revision: str = "main", port: int | None = None, block: bool = True
) -> "gradio.Blocks":
    """Load and serve on this machine; nothing is sent anywhere.

    Args:
        sources: Folders of results, or one dataset on the Hub.
        revision: Revision of the dataset.
        port: Port to listen on; None for a free one.
        block: Wait until the server is stopped.
    """
    app = build(load(sources, revision), lambda: load(sources, revision))
    app.launch(server_port=port, share=False, prevent_thread_lock=not block, theme=theme(), quiet=not block)
    return app


def theme() -> Any:
    """Return a theme with the fonts of the machine: none is fetched."""
    import gradio as gr

    fonts = ["system-ui", "sans-serif"]  # Also used by tables, whose font is called monospace.
    return gr.themes.Default(font=fonts, font_mono=fonts)
