"""The gradio app. Names and notes come from strangers: every cell is text, never markup."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import MissingExtra
from cardiobench.leaderboard import table
from cardiobench.leaderboard.source import load
from cardiobench.report.overview import MARKS
from cardiobench.results.collect import Collection
from cardiobench.results.formatting import ABOVE_MEANING, FLOOR_MEANING

if TYPE_CHECKING:
    import gradio
    import pandas

TITLE = "CardioBench leaderboard"
INTRODUCTION = (
    f"Every score stands beside its **floor**: {FLOOR_MEANING}. Above the floor: {ABOVE_MEANING}. A cell says how far a model gets "
    "from the floor (0 %) to a perfect score (100 %), then the score with its 95 % interval over patients. There is no mean over tasks: "
    "coverage says how many a row has. Signs: " + "; ".join(f"{sign} {name}" for name, (sign, _) in MARKS.items()) + "."
)


def build(collection: Collection, reload: Callable[[], Collection] | None = None) -> "gradio.Blocks":
    """Build the app over results.

    Args:
        collection: results that were loaded.
        reload: loads them again when a visitor asks for it; None for results that do not change.

    Raises:
        MissingExtra: gradio is not installed.
    """
    try:
        import gradio as gr
    except ImportError:
        raise MissingExtra("the leaderboard", "leaderboard", "gradio") from None
    current = collection  # what the page shows; a reload puts another in its place
    kinds, tasks = table.kinds(current), table.tasks_of(current.entries)
    with gr.Blocks(title=TITLE, analytics_enabled=False) as app:
        gr.Markdown(f"# {TITLE}\n\n{INTRODUCTION}")
        with gr.Row():
            model = gr.Textbox(label="Model", placeholder="part of a name", elem_id="filter-model")
            protocol = gr.Dropdown(
                _protocols(current), value="", label="Protocol (empty: all)", elem_id="filter-protocol"
            )
            above = gr.Checkbox(label="only above the floor", elem_id="filter-above")
            again = gr.Button("Reload", elem_id="reload", visible=reload is not None)
        with gr.Tab("Overview"):
            kind = gr.Dropdown(kinds, value=kinds[0] if kinds else None, label="Table", elem_id="filter-kind")
            board = _frame(
                gr, table.overview(current, kinds[0]) if kinds else None, "Models by tasks", "overview", MODELS
            )
        with gr.Tab("Tasks"):
            task = gr.Dropdown(tasks, value=tasks[0] if tasks else None, label="Task", elem_id="filter-task")
            words = gr.Textbox(table.about(current, tasks[0]) if tasks else "", label="About", interactive=False)
            types = list(table.SCORES.values())
            scores = _frame(
                gr, table.scores(current, tasks[0]) if tasks else None, "Scores, best first", "scores", types
            )
            bars = _bars(gr, table.chart(current, tasks[0]) if tasks else None)
        with gr.Tab("Not ranked"):
            problems = _frame(gr, table.problems(current), "Found, and in no table", "problems", "str")

        def shown(kind: str, task: str, model: str, protocol: str, above: bool) -> tuple[Any, ...]:
            choice = table.Choice(model, protocol or "", above)
            return (
                table.overview(current, kind, choice),
                table.scores(current, task, choice),
                table.about(current, task) if task else "",
                _bars(gr, table.chart(current, task, choice)),
            )

        def loaded_again(kind: str, task: str, model: str, protocol: str, above: bool) -> tuple[Any, ...]:
            nonlocal current
            current = reload() if reload else current
            kinds, tasks = table.kinds(current), table.tasks_of(current.entries)
            kind, task = _still(kind, kinds), _still(task, tasks)
            lists = (gr.Dropdown(kinds, value=kind), gr.Dropdown(tasks, value=task), gr.Dropdown(_protocols(current)))
            return *shown(kind, task, model, protocol, above), table.problems(current), *lists

        controls: list[Any] = [kind, task, model, protocol, above]
        views: list[Any] = [board, scores, words, bars]
        for control in controls:
            control.change(shown, controls, views, api_name=False)
        again.click(loaded_again, controls, [*views, problems, kind, task, protocol], api_name=False)
    return app


MODELS = ["markdown", "str"]
"""Data types of the first columns of the overview; all further ones are text."""


def _protocols(collection: Collection) -> list[str]:
    return ["", *sorted({entry.result.label for entry in collection.entries})]


def _still(name: str, names: Sequence[str]) -> str:
    """Return a choice if it is still there, else the first one."""
    return name if name in names else next(iter(names), "")


def _bars(gr: Any, value: "pandas.DataFrame | None") -> Any:
    """Return a chart of scores from zero upwards, the best one first."""
    top = 1.05 * value["score"].max() if value is not None and len(value) else 1.0
    order = None if value is None else value["model and protocol"].tolist()
    return gr.BarPlot(value, x="model and protocol", y="score", sort=order, y_lim=[0, top])


def _frame(gr: Any, value: "pandas.DataFrame | None", label: str, name: str, types: Sequence[str] | str) -> Any:
    if value is not None and not isinstance(types, str):
        types = [*types, *["str"] * (len(value.columns) - len(types))]
    widths = [f"{table.WIDTHS.get(str(column), 240)}px" for column in value] if value is not None else None
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
        sources: folders of results, or one dataset on the Hub.
        revision: of the dataset.
        port: to listen on; a free one when None.
        block: wait until the server is stopped.
    """
    app = build(load(sources, revision), lambda: load(sources, revision))
    app.launch(server_port=port, share=False, prevent_thread_lock=not block, theme=theme(), quiet=not block)
    return app


def theme() -> Any:
    """Return a theme with the fonts of the machine: none is fetched."""
    import gradio as gr

    return gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
