"""Write local pages with each model's worst test examples and their recordings."""

import math
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from cardiobench.core import extensions
from cardiobench.core.errors import BadConfig, BadData, BadMedia, MissingData
from cardiobench.core.io import own_folder, write_text
from cardiobench.data import catalog
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.media.types import LEADS, Clip, Ecg, FrameSampling
from cardiobench.data.open import open_dataset
from cardiobench.data.spec import Task
from cardiobench.report.overview import find_task
from cardiobench.report.page.naming import anchor
from cardiobench.report.page.render import page_environment
from cardiobench.report.plots.draw import best_of_each_model, read_predictions
from cardiobench.report.plots.style import TEXT
from cardiobench.results.collect import Collection, Problem, ResultEntry

WORST = 12
FRAMES, HEIGHT = 6, 112  # Number of frames per strip and height in pixels.
SHOWN_LEADS = ("II", "V1", "V5")
SQUARES = {"minor": (0.04, 0.1, 0.3), "major": (0.2, 0.5, 0.8)}
"""Mapping from grid of ECG paper to seconds and millivolts per side and line width in points."""
SECOND, MILLIVOLT = 72 / 1.016, 72 / 2.54
"""Points per second at 25 mm/s, and per millivolt at 10 mm/mV."""
FOLDER = "examples"
Links = dict[str, list[tuple[str, str]]]


@dataclass(frozen=True)
class Example:
    """Wrongly predicted test unit.

    Attributes:
        id: Id of the unit.
        truth: Label with unit.
        prediction: Predicted value with unit.
        error: Description of the error size.
        image: Frame strip or ECG trace, or the reason for its absence.
        description: Description of the image.
        patient: Age and sex, if the data licence permits showing them.
    """

    id: str
    truth: str
    prediction: str
    error: str
    image: Markup | str
    description: str
    patient: str = ""


def worst_predictions(frame: pd.DataFrame, task: Task, count: int = WORST) -> pd.DataFrame:
    """Return the units with the largest error in descending order.

    Args:
        frame: Predictions with id, y_true, y_pred and, if available, p_<class> columns.
        task: Task of the predictions.
        count: Maximum number of examples; for classes, only errors are included.

    Returns:
        Rows with an `error` column (`TaskKind.errors`).
    """
    frame = frame.assign(error=task.rules.errors(frame, task)).dropna(subset=["error"])
    return frame.sort_values(["error", "id"], ascending=[False, True]).head(count)


def write_examples(
    collection: Collection,
    out: Path,
    tasks: Sequence[str],
    data_dir: Path | None,
    leads: Sequence[str] = SHOWN_LEADS,
) -> tuple[Links, list[Problem]]:
    """Write one page per task and model below `out/examples`, which is never committed or pushed.

    Args:
        collection: Results with predictions.
        out: Folder of the report.
        tasks: Task names; empty for all tasks with local data.
        data_dir: Folder with raw data.
        leads: ECG leads to draw.

    Returns:
        Mapping from task to (title, relative address) of its pages, and problems with missing examples.
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
            links.setdefault(name, []).append(_write(entry, task, dataset, examples(dataset, task, frame, leads), out))
    for name in (name for name in dict.fromkeys(tasks) if name not in links):
        message = (
            "no result with answers of this task, its recordings are not here, or no installed extension draws them"
        )
        problems.append(Problem(name, "no examples", message))
    return links, problems


def drawable(task: Task) -> bool:
    """Return whether examples of a task can be drawn; labelled frames require an extension."""
    return not catalog.spans_datasets(task) and (
        not task.dense or task.rules.answer in extensions.contributions("answers")
    )


def check_leads(names: Sequence[str]) -> tuple[str, ...]:
    """Return the named leads in the order of `LEADS`; `all` selects every lead.

    Raises:
        BadConfig: A lead name is unknown.
    """
    unknown = [name for name in names if name not in ("all", *LEADS)]
    if unknown:
        raise BadConfig(f"--leads {unknown[0]!r} is not a lead. Give some of {', '.join(LEADS)}, or all.")
    return LEADS if "all" in names else tuple(lead for lead in LEADS if lead in names)


def examples(
    dataset: OpenDataset, task: Task, frame: pd.DataFrame, leads: Sequence[str] = SHOWN_LEADS
) -> list[Example]:
    """Return a model's worst units with their recordings.

    Args:
        dataset: Dataset of the recordings.
        task: Task of the predictions.
        frame: Predictions with id, y_true, y_pred and, if available, p_<class> columns.
        leads: ECG leads to draw.
    """
    if answers := extensions.contributions("answers").get(task.rules.answer):
        return list(extensions.resolve(answers).examples(dataset, task, frame))
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
            *_image(dataset, rows.index[units == str(row.id)], leads),
        )
        for row in worst_predictions(frame, task).itertuples()
    ]


def _open(task: Task, data_dir: Path | None, problems: list[Problem]) -> OpenDataset | None:
    try:
        return open_dataset(task.dataset, data_dir, allow_missing=True)
    except (MissingData, BadData) as error:
        problems.append(Problem(task.dataset, "no examples", f"its recordings are not here: {error}"))
        return None


def _image(dataset: OpenDataset, rows: pd.Index, leads: Sequence[str]) -> tuple[Markup | str, str, str]:
    """Return the image, its description and the patient of a unit's first recording."""
    if not len(rows):
        return "its recording is not on this machine", "no recording", ""
    sampling = FrameSampling(count=FRAMES, start="uniform") if dataset.spec.modality == "echo" else None
    try:
        recording = dataset.recording(dataset.frame.index.get_loc(rows[0]), sampling)
    except BadMedia as error:
        return f"cannot be read: {error}", "no recording", ""
    patient = patient_text(recording.facts) if dataset.generated or dataset.spec.redistributable else ""
    more = f"; the first of its {len(rows)} recordings" if len(rows) > 1 else ""
    if isinstance(recording, Ecg):
        seconds = len(recording.signal) / recording.fs
        shown = [lead for lead in leads if lead in recording.leads]
        paper = "small squares 40 ms and 0.1 mV, large ones 200 ms and 0.5 mV"
        return ecg_trace(recording, shown), f"leads {', '.join(shown)}, {seconds:.0f} s; {paper}{more}", patient
    return frame_strip(recording), f"{min(FRAMES, len(recording.frames))} of {recording.n_frames} frames{more}", patient


def patient_text(facts: Mapping[str, Any]) -> str:
    """Describe age and sex as far as they are known."""
    sex = {"F": "female", "M": "male"}.get(str(facts.get("sex")), "")
    age = facts.get("age")
    years = "" if age is None or math.isnan(age) else f"{age:.0f} years"
    return ", ".join(filter(None, (sex, years)))


def frame_strip(clip: Clip) -> Markup:
    """Return frames of a clip side by side as a small JPEG."""
    from PIL import Image

    chosen = np.unique(np.linspace(0, len(clip.frames) - 1, FRAMES).round().astype(int))
    size = (max(1, round(clip.frames.shape[2] * HEIGHT / clip.frames.shape[1])), HEIGHT)
    frames = [np.asarray(Image.fromarray(frame).resize(size)) for frame in clip.frames[chosen]]
    content = BytesIO()
    Image.fromarray(np.concatenate(frames, axis=1)).save(content, format="JPEG", quality=80)
    code = b64encode(content.getvalue()).decode("ascii")
    return Markup('<img alt="" src="data:image/jpeg;base64,{}">').format(code)


def ecg_trace(ecg: Ecg, leads: Sequence[str] = SHOWN_LEADS) -> Markup:
    """Return stacked leads on ECG paper as SVG, at 25 mm/s and 10 mm/mV.

    The paper is simple enough to be written without matplotlib, which takes thirty times as long.
    """
    signal = np.nan_to_num(ecg.signal[:, [LEADS.index(lead) for lead in leads]].astype(np.float64))
    # Align zero lines with the strong grid lines, so that amplitudes can be counted.
    spacing = math.ceil(max(1.0, float(np.ptp(signal, axis=0).max(initial=0))) / 0.5) * 0.5
    offsets = -np.arange(len(leads)) * spacing
    low, high = float((signal + offsets).min(initial=-0.5)), float((signal + offsets).max(initial=0.5))
    low, high = math.floor(low / 0.5) * 0.5, math.ceil(high / 0.5) * 0.5
    seconds = len(signal) / ecg.fs
    step = max(1, len(signal) // 2400)  # Number of samples between two drawn points.
    width, height = SECOND * seconds, MILLIVOLT * (high - low)
    times = [f"{x:.1f}," for x in SECOND * np.arange(0, len(signal), step) / ecg.fs]
    drawn = [_squares(seconds, high - low, *sides) for sides in SQUARES.values()]
    for lead, offset, levels in zip(leads, offsets, MILLIVOLT * (high - signal[::step] - offsets).T, strict=True):
        points = " ".join(f"{time}{level:.1f}" for time, level in zip(times, levels, strict=True))
        drawn.append(f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="0.8"/>')
        drawn.append(f'<text x="-8" y="{MILLIVOLT * (high - offset):.1f}" dy="0.35em" text-anchor="end">{lead}</text>')
    drawn += [
        f'<text x="{SECOND * time:.1f}" y="{height + 14:.1f}" text-anchor="middle">{time} s</text>'
        for time in range(0, math.floor(seconds) + 1, max(1, round(seconds / 5)))
    ]
    box = f"-48 -6 {width + 66:.1f} {height + 28:.1f}"  # The style sheet enlarges the texts on small screens.
    return Markup(
        f'<svg viewBox="{box}" width="{round((width + 66) * 4 / 3)}" aria-hidden="true" font-size="{TEXT}" fill="currentColor">'
        f"{''.join(drawn)}</svg>"
    )


def _squares(seconds: float, millivolts: float, side: float, rise: float, line: float) -> str:
    """Return the grid lines of squares as one SVG path.

    Args:
        seconds: Width of the paper.
        millivolts: Height of the paper.
        side: Width of a square in seconds.
        rise: Height of a square in millivolts.
        line: Width of the lines in points.
    """
    width, height = SECOND * seconds, MILLIVOLT * millivolts
    upright = [f"M{SECOND * x:.1f},0V{height:.1f}" for x in np.arange(0, seconds + side / 2, side)]
    level = [f"M0,{MILLIVOLT * y:.1f}H{width:.1f}" for y in np.arange(0, millivolts + rise / 2, rise)]
    return f'<path d="{"".join((*upright, *level))}" fill="none" stroke="var(--line)" stroke-width="{line}"/>'


def _write(
    entry: ResultEntry, task: Task, dataset: OpenDataset, shown: Sequence[Example], out: Path
) -> tuple[str, str]:
    """Save a page and return its title and relative address."""
    model, folder = entry.result.model["name"], own_folder(out / FOLDER)
    name = f"{anchor('worst', f'{task.name} {entry.setting}{entry.path}')}.html"
    template = page_environment(out).get_template("examples.html")
    text = template.render(task=task, dataset=dataset, model=model, protocol=entry.result.label, examples=shown)
    write_text("*\n", folder / ".gitignore")
    write_text(text, folder / name, errors="replace")
    return model, f"{FOLDER}/{name}"
