"""Where models fail, to look at: the worst test items of each model with their recordings. These pages stay on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from markupsafe import Markup

from cardiobench.core.errors import BadData, BadMedia, MissingData, UnwritableOutput
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.media.types import LEADS, Clip, Ecg, FrameSampling
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task
from cardiobench.report.overview import find_task
from cardiobench.report.page import naming as words
from cardiobench.report.plots import panel as panels
from cardiobench.report.plots.draw import best_of_each_model, read_answers
from cardiobench.report.plots.style import INK, inline, new_figure, style
from cardiobench.results.collect import Collection, Entry, Problem

WORST = 12
FRAMES, HEIGHT = 6, 112  # of a strip, in pixels
SHOWN_LEADS = ("II", "V1", "V5")
FOLDER = "examples"


@dataclass(frozen=True)
class Item:
    """A test unit that a model got wrong.

    Attributes:
        id: of the unit.
        truth: label, with its unit.
        answer: of the model.
        error: how wrong, in words.
        picture: strip or trace, or why there is none.
        description: of the picture.
    """

    id: str
    truth: str
    answer: str
    error: str
    picture: Markup | str
    description: str


def worst(frame: pd.DataFrame, task: Task, count: int = WORST) -> pd.DataFrame:
    """The units with the largest error, largest first.

    Args:
        frame: predictions: id, y_true, y_pred and p_<class> where known.
        task: the question.
        count: at most so many; of classes only wrong answers.

    Returns:
        The rows with `error`: the absolute difference, or 1 minus the probability of the true class (1 where unknown).
    """
    if task.kind == "regression":
        error = (frame["y_pred"].astype(float) - frame["y_true"].astype(float)).abs()
        return frame.assign(error=error).sort_values(["error", "id"], ascending=[False, True]).head(count)
    columns = [f"p_{label}" for label in task.classes]
    error = np.ones(len(frame))
    if set(columns) <= set(frame.columns):
        place = frame["y_true"].map({label: n for n, label in enumerate(task.classes)}).to_numpy(int)
        error = 1 - frame[columns].to_numpy(np.float64)[np.arange(len(frame)), place]
    wrong = frame.assign(error=error)[frame["y_true"] != frame["y_pred"]]
    return wrong.sort_values(["error", "id"], ascending=[False, True]).head(count)


def write_examples(
    collection: Collection, out: Path, tasks: Sequence[str], data_dir: Path | None
) -> tuple[dict[str, list[tuple[str, str]]], list[Problem]]:
    """A page a task and model, below `out/examples`, which no commit and no push takes along.

    Args:
        collection: results with their answers.
        out: folder of the report.
        tasks: names; every task with data here when empty.
        data_dir: raw data.

    Returns:
        Task -> (title, link) of its pages, and what could not be shown.
    """
    pages: dict[str, list[tuple[str, str]]] = {}
    problems: list[Problem] = []
    sources: dict[str, OpenDataset | None] = {}
    for name in sorted({entry.result.task for entry in collection.entries}):
        task = find_task(name)
        if task is None or (tasks and name not in tasks):
            continue
        if task.dataset not in sources:
            sources[task.dataset] = _open(task, data_dir, problems)
        source = sources[task.dataset]
        if source is None:
            continue
        own = [entry for entry in collection.entries if entry.result.task == name]
        answers, unread = read_answers(best_of_each_model(own))
        problems += unread
        for entry, frame in answers:
            pages.setdefault(name, []).append(_write(entry, task, items(source, task, frame), out))
    for name in tasks:
        if name not in pages:
            problems.append(
                Problem(name, "no examples", "no result with answers of this task, or its recordings are not here")
            )
    return pages, problems


def items(source: OpenDataset, task: Task, frame: pd.DataFrame) -> list[Item]:
    """The worst units of a model with their recordings."""
    rows = source.task_rows(task)
    unit = "" if task.classes else f" {task.unit}"
    made = []
    for row in worst(frame, task).itertuples():
        lines = rows.index[rows[task.unit_column].astype(str) == str(row.id)]
        picture, description = _picture(source, lines)
        error = (
            f"{row.error:.2f}{unit} off" if not task.classes else f"{100 * row.error:.0f} % away from the true class"
        )
        truth, answer = (
            (f"{float(value):.2f}{unit}" if not task.classes else str(value)) for value in (row.y_true, row.y_pred)
        )
        made.append(Item(str(row.id), truth, answer, error, picture, description))
    return made


def _open(task: Task, data_dir: Path | None, problems: list[Problem]) -> OpenDataset | None:
    try:
        return open_dataset(task.dataset, data_dir, allow_missing=True)
    except (MissingData, BadData) as error:
        problems.append(Problem(task.dataset, "no examples", f"its recordings are not here: {error}"))
        return None


def _picture(source: OpenDataset, lines: pd.Index) -> tuple[Markup | str, str]:
    """The first recording of a unit; of several recordings their number is said."""
    if not len(lines):
        return "its recording is not here", "no recording"
    sampling = FrameSampling(count=FRAMES, start="uniform") if source.spec.modality == "echo" else None
    try:
        recording = source.recording(source.frame.index.get_loc(lines[0]), sampling)
    except BadMedia as error:
        return f"cannot be read: {error}", "no recording"
    more = f"; the first of its {len(lines)} recordings" if len(lines) > 1 else ""
    if isinstance(recording, Ecg):
        return trace(
            recording
        ), f"leads {', '.join(SHOWN_LEADS)} in mV, {len(recording.signal) / recording.fs:.0f} s{more}"
    return strip(recording), f"{min(FRAMES, len(recording.frames))} of {recording.n_frames} frames{more}"


def strip(clip: Clip) -> Markup:
    """Frames side by side, as one small JPEG."""
    from base64 import b64encode
    from io import BytesIO

    from PIL import Image

    places = np.unique(np.linspace(0, len(clip.frames) - 1, FRAMES).round().astype(int))
    small = [
        Image.fromarray(frame).resize((max(1, round(frame.shape[1] * HEIGHT / frame.shape[0])), HEIGHT))
        for frame in clip.frames[places]
    ]
    row = Image.fromarray(np.concatenate([np.asarray(frame) for frame in small], axis=1))
    content = BytesIO()
    row.save(content, format="JPEG", quality=80)
    code = b64encode(content.getvalue()).decode("ascii")
    return Markup('<img alt="" src="data:image/jpeg;base64,{}">').format(code)


def trace(ecg: Ecg) -> Markup:
    """Three leads above each other, in mV against seconds."""
    from io import StringIO

    with style():
        figure = new_figure(7.2, 1.7)
        seconds = np.arange(len(ecg.signal)) / ecg.fs
        step = max(1, len(seconds) // 1200)
        leads = [np.nan_to_num(ecg.signal[:, LEADS.index(lead)].astype(np.float64)) for lead in SHOWN_LEADS]
        apart = max(1.0, max(float(np.ptp(lead)) for lead in leads))
        shifted = [lead[::step] - place * apart for place, lead in enumerate(leads)]
        scales = panels.around(seconds, margin=0), panels.around(*shifted)
        panel = panels.Panel(figure, (0.5, 0.42, 6.6, 1.2), *scales)
        panel.bottom_scale("s", size=8)
        for place, (name, lead) in enumerate(zip(SHOWN_LEADS, shifted, strict=True)):
            panel.line(seconds[::step], lead, color=INK, linewidth=0.7)
            height = float(panel.up(-place * apart))
            panels.words(figure, panel.left - 0.08, height, name, ha="right", va="center")
        text = StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
    return Markup(inline(text.getvalue(), "ecg"))


def _write(entry: Entry, task: Task, shown: Sequence[Item], out: Path) -> tuple[str, str]:
    """Save a page; returns its title and its address from the report."""
    from cardiobench.report.page.render import environment

    name = f"{words.anchor('worst', task.name + ' ' + entry.setting + str(entry.path))}.html"
    page = environment(out).get_template("examples.html")
    text = page.render(task=task, model=entry.result.model["name"], protocol=entry.result.label, items=shown)
    folder = out / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        (folder / name).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UnwritableOutput(f"{folder} cannot be written: {error.strerror or error}") from error
    return entry.result.model["name"], f"{FOLDER}/{name}"
