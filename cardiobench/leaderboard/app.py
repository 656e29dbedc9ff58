"""Build the gradio app; names and notes are untrusted, so every cell is shown as text without markup."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cardiobench.core.errors import MissingExtra
from cardiobench.leaderboard import model_page, serving, table
from cardiobench.leaderboard.grid import BoardTable
from cardiobench.leaderboard.source import is_repository, load
from cardiobench.leaderboard.state import NAMES, settle
from cardiobench.leaderboard.submissions import UNKNOWN_TRIES
from cardiobench.leaderboard.submit import submit_text
from cardiobench.leaderboard.visitors import CONTENTS, FIRST, TABS, Visitors, outputs
from cardiobench.report.overview import MARKS
from cardiobench.results.collect import Collection
from cardiobench.results.formatting import FLOOR_MEANING
from cardiobench.results.verdict import Verdict
from cardiobench.scoring.pairs import COMPLETE, LETTERS, UNPAIRED

if TYPE_CHECKING:
    import gradio

TITLE = "CardioBench leaderboard"
TALL = 640
"""Height of the overview in pixels: ten rows of two lines fit a screen of 1280 x 900."""
LEAD = f"A place is a range, because models can be close. {LETTERS} Brackets are 95 % intervals over patients."
GUIDE = (
    "There is one board per condition, best first. "
    f"{UNPAIRED}\n\n"
    f"**Floor**: {FLOOR_MEANING}. **Above the floor**: {Verdict.ABOVE.meaning}.\n\n"
    "A place is an interval: from 1 plus the number of better models to the number of models minus the number of worse models. "
    f"Letters are groups. {LETTERS} "
    f"A row that lacks more than {1 - COMPLETE:.0%} of the tasks has no place and no mean. "
    f"Generated recordings have no places. {UNKNOWN_TRIES}\n\n"
    "The places of an overview count the tasks of the suite, or a set of tasks that two or more rows answered completely. Rows are compared "
    "by the mean over the tasks that both answered; different metrics are not averaged, and a row is better than another if it is better by "
    "one metric and worse by none. All pairs of a table are corrected together (Holm). The mean of a row is over the tasks of the table that "
    "it answered, and its interval adds up the standard errors of the tasks of a dataset. Results of a suite are only ranked with results of "
    "the same suite.\n\n"
    "Each task shows the score, its marks and its 95 % interval over patients. The heat map and the column *floor to perfect* show the "
    "share of the way from the floor (0 %) to a perfect score (100 %). Parameters and FLOPs are those of the results, FLOPs per recording, "
    "and the date is that of the newest result of a row."
)
MORE = """() => {
  const open = document.querySelector('#more-filters').classList.toggle('cb-open');
  document.querySelector('#more').setAttribute('aria-expanded', open);
}"""
"""Script that shows or hides the second line of filters."""
SIGNS = "\n".join(f"* {sign} {name}" for name, (sign, _) in MARKS.items())
ADDRESS = """(...values) => {
  const at = new URL(location);
  NAMES.forEach((name, number) => {
    const value = values[number];
    if (value === undefined || value === null || value === '' || value === false) at.searchParams.delete(name);
    else at.searchParams.set(name, value);
  });
  history.replaceState(null, '', at);
  return values;
}"""
"""Script that writes control values to the address, so that every view has a link."""


def build(
    views: Mapping[str, Collection], reload: Callable[[], Mapping[str, Collection]] | None = None, dataset: str = ""
) -> "gradio.Blocks":
    """Build the app for results.

    Args:
        views: Mapping from suite to loaded results; a visitor sees one suite at a time.
        reload: Function that reloads results on request; None for fixed results.
        dataset: Dataset of the results, `org/name`; empty for folders.

    Raises:
        MissingExtra: The package gradio is not installed.
    """
    try:
        import gradio as gr
    except ImportError as error:
        # Gradio may be there and fail to import another package.
        raise MissingExtra("the leaderboard", "leaderboard", (error.name or "gradio").partition(".")[0]) from error
    visitors = Visitors(views, reload)
    state, options = settle(views, {})
    controls: dict[str, Any] = {}

    def dropdown(name: str, label: str, **more: Any) -> None:
        value = getattr(state, name)
        controls[name] = gr.Dropdown(options[name], value=value, label=label, elem_id=f"filter-{name}", **more)

    with gr.Blocks(title=TITLE, analytics_enabled=False) as app:
        with gr.Row(elem_id="head"):
            gr.Markdown(f"# {TITLE}")
            counts = gr.Markdown(table.counts(views[state.suite]), elem_id="counts")
        gr.Markdown(LEAD, elem_id="lead")
        with gr.Row(elem_id="filters"):
            dropdown("board", "Board", min_width=110)
            dropdown("kind", "Table", min_width=110, scale=2)
            dropdown("suite", "Suite", min_width=110, visible=len(views) > 1)
            dropdown("protocol", "Protocol", min_width=110)
            controls["search"] = gr.Textbox(
                label="Model", placeholder="part of it", elem_id="filter-search", min_width=110
            )
            with gr.Column(elem_id="switches", min_width=130, scale=0):
                controls["heat"] = gr.Checkbox(label="Heat map", elem_id="filter-heat", container=False)
                more = gr.Button("More filters", elem_id="more", size="sm")
        with gr.Row(elem_id="more-filters"):
            dropdown("modality", "Modality")
            dropdown("licence", "Licence of the weights")
            dropdown("size", "Parameters")
            controls["unseen"] = gr.Checkbox(
                label="without data seen in pretraining", elem_id="filter-unseen", min_width=220
            )
            controls["above"] = gr.Checkbox(label="above the floor only", elem_id="filter-above", min_width=220)
        shown = outputs(views[state.suite], state, FIRST)
        with gr.Tabs() as tabs:
            with gr.Tab("Overview", id="overview"):
                board = _frame(
                    gr,
                    shown["overview"],
                    "Models by tasks, best first",
                    "overview",
                    show_label=False,
                    buttons=[],
                    max_height=TALL,
                )
                heat = gr.HTML(shown["heat"], elem_id="heat")
                noise = gr.Markdown(shown["noise"], elem_id="noise")
            with gr.Tab("Tasks", id="tasks"):
                dropdown("task", "Task")
                about = gr.Textbox(label="About", interactive=False, elem_id="about")
                scores = _frame(gr, BoardTable(table.SCORES), "Scores, best first", "scores")
                chart = gr.HTML(elem_id="chart")
                costs = _frame(
                    gr, BoardTable(table.COSTS), "Cost, by place; FLOPs and bytes are per recording", "costs"
                )
                flops = gr.HTML(elem_id="flops")
            with gr.Tab("Models", id="models"):
                dropdown("model", "Model of this page")
                name = gr.HTML(elem_id="model-name")
                card = gr.Markdown(elem_id="card")
                of_model = _frame(gr, BoardTable(model_page.TASKS), "Its results on all boards", "model-tasks")
                versions = _frame(gr, BoardTable(model_page.VERSIONS), "Its revisions, newest result first", "versions")
            with gr.Tab("Submit and cite", id="submit"):
                gr.Markdown(submit_text(dataset))
            with gr.Tab("Submissions", id="owners"):
                owners = _frame(
                    gr, BoardTable(model_page.OWNERS), "Revisions of models that each owner submitted", "owners"
                )
            with gr.Tab("Not ranked", id="problems"):
                problems = _frame(gr, BoardTable(table.PROBLEMS), "Not ranked", "problems")
        with gr.Accordion("How to read the tables", open=False):
            gr.Markdown(f"{GUIDE}\n\n{SIGNS}")
        with gr.Row():
            files = [gr.DownloadButton(f"Download {kind}", size="sm") for kind in ("CSV", "Parquet")]
        again = gr.Button("Reload", elem_id="reload", visible=reload is not None)
        ordered = [controls[name] for name in NAMES]
        shows = dict(
            overview=board,
            heat=heat,
            noise=noise,
            about=about,
            scores=scores,
            chart=chart,
            costs=costs,
            flops=flops,
            name=name,
            card=card,
            model_tasks=of_model,
            versions=versions,
            owners=owners,
            problems=problems,
        )
        tab_shown = gr.State(FIRST)

        def opened(request: gr.Request) -> Any:
            return visitors.opened(dict(request.query_params))

        everything = [*ordered, counts, *(shows[name] for name in CONTENTS)]
        script = ADDRESS.replace("NAMES", json.dumps(NAMES))
        for name, control in controls.items():
            event = control.change if name == "search" else control.input
            event(
                visitors.changed,
                [*ordered, tab_shown],
                everything,
                js=script,
                api_name=False,
                trigger_mode="always_last",
                show_progress="hidden",
            )
        more.click(None, None, None, js=MORE, api_name=False)
        again.click(visitors.loaded_again, [*ordered, tab_shown], everything, api_name=False).then(
            visitors.files_of, controls["suite"], files, api_name=False, show_progress="hidden"
        )
        controls["suite"].input(visitors.files_of, controls["suite"], files, api_name=False, show_progress="hidden")
        for tab in tabs.children:
            written_at = f"({ADDRESS.replace('NAMES', json.dumps(['tab']))})({json.dumps(tab.id)})"
            # Gradio selects the first tab once during page creation, before the address is read.
            at = f"() => {{ if (window.cardiobenchShown) {written_at}; window.cardiobenchShown = true; }}"
            tab.select(None, None, None, js=at, api_name=False)
            tab.select(
                partial(visitors.selected, tab.id),
                [*ordered, tab_shown],
                [tab_shown, *(shows[name] for name in TABS[tab.id])],
                api_name=False,
                show_progress="hidden",
            )
        app.load(opened, None, [*everything, tabs, tab_shown], api_name=False, show_progress="hidden").then(
            visitors.files_of, controls["suite"], files, api_name=False, show_progress="hidden"
        )
    return app


def _frame(gr: Any, grid: BoardTable, label: str, name: str, **more: Any) -> Any:
    return gr.Dataframe(
        grid.value(),
        label=label,
        elem_id=name,
        interactive=False,
        wrap=True,
        latex_delimiters=[],
        **grid.options(),
        **more,
    )


def launch(
    sources: Sequence[str],
    *,
    revision: str = "main",
    suites: Sequence[str] = (),
    port: int | None = None,
    block: bool = True,
) -> "gradio.Blocks":
    """Load results and serve the app locally; no data is sent anywhere.

    Args:
        sources: Folders of results, or one Hub dataset.
        revision: Revision of the dataset.
        suites: Suites to show besides those of this package and its extensions.
        port: Server port; None for a free one.
        block: Whether to wait until the server stops.
    """
    dataset = sources[0] if is_repository(sources[0]) and not Path(sources[0]).is_dir() else ""
    app = build(load(sources, revision, suites), lambda: load(sources, revision, suites), dataset)
    app.launch(server_port=port, share=False, prevent_thread_lock=not block, quiet=not block, **serving.options())
    return app
