"""The gradio app. Names and notes come from strangers: every cell is text, never markup."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import MissingExtra
from cardiobench.leaderboard import table
from cardiobench.leaderboard.source import load
from cardiobench.report.overview import MARKS
from cardiobench.results.collect import Collection
from cardiobench.results.formatting import ABOVE_MEANING, FLOOR_MEANING

if TYPE_CHECKING:
    import gradio

TITLE = "CardioBench leaderboard"
INTRODUCTION = (
    f"Every score stands beside its **floor**: {FLOOR_MEANING}. Above the floor: {ABOVE_MEANING}. A cell says how far a model gets "
    "from the floor (0 %) to a perfect score (100 %), then the score with its 95 % interval over patients. There is no mean over tasks: "
    "coverage says how many a row has. Signs: " + "; ".join(f"{sign} {name}" for name, (sign, _) in MARKS.items()) + "."
)


def build(collection: Collection) -> "gradio.Blocks":
    """Build the app over results that were loaded once.

    Raises:
        MissingExtra: gradio is not installed.
    """
    try:
        import gradio as gr
    except ImportError:
        raise MissingExtra("the leaderboard", "leaderboard", "gradio") from None
    kinds, tasks = table.kinds(collection), table.tasks_of(collection.entries)
    protocols = sorted({row["protocol"] for task in tasks for row in table.scores(collection, task).to_dict("records")})
    with gr.Blocks(title=TITLE, analytics_enabled=False) as app:
        gr.Markdown(f"# {TITLE}\n\n{INTRODUCTION}")
        with gr.Row():
            model = gr.Textbox(label="Model", placeholder="part of a name", elem_id="filter-model")
            protocol = gr.Dropdown(["", *protocols], value="", label="Protocol (empty: all)", elem_id="filter-protocol")
            above = gr.Checkbox(label="only above the floor", elem_id="filter-above")
        with gr.Tab("Overview"):
            kind = gr.Dropdown(kinds, value=kinds[0] if kinds else None, label="Table", elem_id="filter-kind")
            board = _frame(gr, table.overview(collection, kinds[0]) if kinds else None, "Models by tasks", "overview")
        with gr.Tab("Tasks"):
            task = gr.Dropdown(tasks, value=tasks[0] if tasks else None, label="Task", elem_id="filter-task")
            words = gr.Textbox(table.about(collection, tasks[0]) if tasks else "", label="About", interactive=False)
            scores = _frame(gr, table.scores(collection, tasks[0]) if tasks else None, "Scores, best first", "scores")
        with gr.Tab(f"Not ranked ({len(collection.problems)})"):
            _frame(gr, table.problems(collection), "Found, and in no table", "problems")

        def shown(kind: str, task: str, model: str, protocol: str, above: bool):
            choice = table.Choice(model, protocol or "", above)
            return (
                table.overview(collection, kind, choice),
                table.scores(collection, task, choice),
                table.about(collection, task) if task else "",
            )

        controls: list[Any] = [kind, task, model, protocol, above]
        for control in controls:
            control.change(shown, controls, [board, scores, words], api_name=False)
    return app


def _frame(gr, value, label: str, name: str):
    return gr.Dataframe(
        value, label=label, elem_id=name, interactive=False, datatype="str", wrap=True, latex_delimiters=[]
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
    app = build(load(sources, revision))
    app.launch(server_port=port, share=False, prevent_thread_lock=not block, theme=theme(), quiet=not block)
    return app


def theme():
    """Return a theme with the fonts of the machine: none is fetched."""
    import gradio as gr

    return gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
