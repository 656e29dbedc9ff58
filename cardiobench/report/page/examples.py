"""Pages of the worst test items of each model with their recordings; they stay on this machine."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path

import numpy as np
import pandas as pd
from markupsafe import Markup

from cardiobench.core import extensions
from cardiobench.core.errors import BadData, BadMedia, MissingData
from cardiobench.core.io import write_text
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.media.types import LEADS, Clip, Ecg, FrameSampling
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task
from cardiobench.report.overview import find_task
from cardiobench.report.page.naming import anchor
from cardiobench.report.page.render import page_environment
from cardiobench.report.plots.draw import best_of_each_model, read_predictions
from cardiobench.report.plots.style import INK, figure_style, subplots
from cardiobench.report.plots.svg import inline_svg
from cardiobench.results.collect import Collection, Problem, ResultEntry

WORST = 12
FRAMES, HEIGHT = 6, 112  # Height of a strip in pixels.
SHOWN_LEADS = ("II", "V1", "V5")
FOLDER = "examples"
Links = dict[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Example:
    """A test unit that a model got wrong.

    Attributes:
        id: Unit id.
        truth: Label, with its unit.
        prediction: Prediction of the model, with the unit.
        error: Size of the error in words.
        image: Strip of frames or ECG trace, or why there is none.
        description: Description of the image.
    """

    id: str
    truth: str
    prediction: str
    error: str
    image: Markup | str
    description: str


def worst_predictions(frame: pd.DataFrame, task: Task, count: int = WORST) -> pd.DataFrame:
    """Return the units with the largest error, largest first.

    Args:
        frame: Predictions: id, y_true, y_pred and p_<class> where known.
        task: Task with the classes.
        count: Maximum number of examples; of classes only wrong answers.

    Returns:
        The rows with `error` (`TaskKind.errors`).
    """
    frame = frame.assign(error=task.rules.errors(frame, task)).dropna(subset=["error"])
    return frame.sort_values(["error", "id"], ascending=[False, True]).head(count)


def write_examples(
    collection: Collection, out: Path, tasks: Sequence[str], data_dir: Path | None
) -> tuple[Links, list[Problem]]:
    """Write one page per task and model below `out/examples`, which no commit and no push takes along.

    Args:
        collection: Results with their predictions.
        out: Folder of the report.
        tasks: Names; every task with data here when empty.
        data_dir: Raw data.

    Returns:
        Task -> (title, address from the report) of its pages, and what could not be shown.
    """
    links: Links = {}
    problems: list[Problem] = []
    datasets: dict[str, OpenDataset | None] = {}
    for name in sorted({entry.result.task for entry in collection.entries}):
        task = find_task(name)
        if task is None or not drawable(task) or (tasks and name not in tasks):
            continue
        if task.dataset not in datasets:
            datasets[task.dataset] = _open(task, data_dir, problems)
        dataset = datasets[task.dataset]
        if dataset is None:
            continue
        entries = [entry for entry in collection.entries if entry.result.task == name]
        predictions, unread = read_predictions(best_of_each_model(entries))
        problems += unread
        for entry, frame in predictions:
            links.setdefault(name, []).append(_write(entry, task, dataset, examples(dataset, task, frame), out))
    for name in (name for name in dict.fromkeys(tasks) if name not in links):
        message = (
            "no result with answers of this task, its recordings are not here, or no installed extension draws them"
        )
        problems.append(Problem(name, "no examples", message))
    return links, problems


def drawable(task: Task) -> bool:
    """Return whether examples of a task can be drawn: those of labels in frames only where an extension does."""
    return not catalog.spans_datasets(task) and (
        not task.dense or task.rules.answer in extensions.contributions("examples")
    )


def examples(dataset: OpenDataset, task: Task, frame: pd.DataFrame) -> list[Example]:
    """Return the worst units of a model with their recordings.

    Args:
        dataset: Dataset with the recordings.
        task: Task of the predictions.
        frame: Predictions: id, y_true, y_pred and p_<class> where known.
    """
    if drawing := extensions.contributions("examples").get(task.rules.answer):
        return list(extensions.resolve(drawing)(dataset, task, frame))
    rows = dataset.task_rows(task)
    units = rows[task.unit_column].astype(str)

    def text(value: str | float) -> str:
        return str(value) if task.classes else f"{float(value):.2f} {task.unit}"

    return [
        Example(
            str(row.id),
            text(row.y_true),
            text(row.y_pred),
            f"{100 * row.error:.0f} % away from the true class{'es' * task.rules.empty_label}"
            if task.classes
            else f"{text(row.error)} off",
            *_image(dataset, rows.index[units == str(row.id)]),
        )
        for row in worst_predictions(frame, task).itertuples()
    ]


def _open(task: Task, data_dir: Path | None, problems: list[Problem]) -> OpenDataset | None:
    try:
        return open_dataset(task.dataset, data_dir, allow_missing=True)
    except (MissingData, BadData) as error:
        problems.append(Problem(task.dataset, "no examples", f"its recordings are not here: {error}"))
        return None


def _image(dataset: OpenDataset, rows: pd.Index) -> tuple[Markup | str, str]:
    """Return image and description of a unit's first recording."""
    if not len(rows):
        return "its recording is not here", "no recording"
    sampling = FrameSampling(count=FRAMES, start="uniform") if dataset.spec.modality == "echo" else None
    try:
        recording = dataset.recording(dataset.frame.index.get_loc(rows[0]), sampling)
    except BadMedia as error:
        return f"cannot be read: {error}", "no recording"
    more = f"; the first of its {len(rows)} recordings" if len(rows) > 1 else ""
    if isinstance(recording, Ecg):
        seconds = len(recording.signal) / recording.fs
        return ecg_trace(recording), f"leads {', '.join(SHOWN_LEADS)} in mV, {seconds:.0f} s{more}"
    return frame_strip(recording), f"{min(FRAMES, len(recording.frames))} of {recording.n_frames} frames{more}"


def frame_strip(clip: Clip) -> Markup:
    """Return frames of a clip side by side, as one small JPEG."""
    from PIL import Image

    chosen = np.unique(np.linspace(0, len(clip.frames) - 1, FRAMES).round().astype(int))
    size = (max(1, round(clip.frames.shape[2] * HEIGHT / clip.frames.shape[1])), HEIGHT)
    frames = [np.asarray(Image.fromarray(frame).resize(size)) for frame in clip.frames[chosen]]
    content = BytesIO()
    Image.fromarray(np.concatenate(frames, axis=1)).save(content, format="JPEG", quality=80)
    code = b64encode(content.getvalue()).decode("ascii")
    return Markup('<img alt="" src="data:image/jpeg;base64,{}">').format(code)


def ecg_trace(ecg: Ecg) -> Markup:
    """Return three leads above each other, in mV against seconds, as SVG."""
    leads = np.nan_to_num(ecg.signal[:, [LEADS.index(lead) for lead in SHOWN_LEADS]].astype(np.float64))
    offsets = -np.arange(leads.shape[1]) * max(1.0, float(np.ptp(leads, axis=0).max()))
    step = max(1, len(leads) // 1200)  # Samples between two drawn points.
    with figure_style():
        figure, axes = subplots(figsize=(7.2, 1.9))
        axes.plot(np.arange(0, len(leads), step) / ecg.fs, leads[::step] + offsets, color=INK, linewidth=0.7)
        axes.set_yticks(offsets, SHOWN_LEADS)
        axes.set_xlabel("s")
        axes.margins(x=0)
        axes.grid(True)
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return Markup(inline_svg(text.getvalue()))


def _write(
    entry: ResultEntry, task: Task, dataset: OpenDataset, shown: Sequence[Example], out: Path
) -> tuple[str, str]:
    """Save a page; returns its title and its address from the report."""
    model, folder = entry.result.model["name"], out / FOLDER
    name = f"{anchor('worst', f'{task.name} {entry.setting}{entry.path}')}.html"
    template = page_environment(out).get_template("examples.html")
    text = template.render(task=task, dataset=dataset, model=model, protocol=entry.result.label, examples=shown)
    write_text("*\n", folder / ".gitignore")
    write_text(text, folder / name, errors="replace")
    return model, f"{FOLDER}/{name}"
