"""Sketches of every protocol on recordings with known embeddings: four kinds of tasks, two synthetic datasets."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from cardiobench.core.errors import NotApplicable
from cardiobench.data.media import Clip, Ecg
from cardiobench.data.references import references_of
from cardiobench.data.spec import VIEWS, Group, PromptGrid, Task
from cardiobench.embeddings.vectors import Embeddings
from cardiobench.models.custom import BaseEncoder
from cardiobench.models.load import load_model
from cardiobench.protocols import list_protocols, protocol
from cardiobench.protocols.analysis import Analysis, AnalysisProtocol
from cardiobench.protocols.base import PredictionProtocol, TaskData
from tests.acceptance.encoders import Leads
from tests.versions.case import Case
from tests.versions.models import ecg
from tests.versions.readers import clip
from tests.versions.sketch import numbers

GROUPS = (Group("hospital", "hospital"),)
EF = Task("camus/ef", "regression", "ef", ("mae",), unit="%", label_range=(0, 100), prompt_grid=PromptGrid(0, 100, 1))
VIEW = Task("camus/view", "multiclass", "view", ("f1_macro",), VIEWS)
FINDINGS = Task("phantom_ecg/findings", "multilabel", "findings", ("auroc_macro",), ("AF", "RBBB", "LBBB"))
CD = tuple(
    Task(f"{name}/cd", "binary", "cd", ("f1_macro",), ("no CD", "CD"), groups=GROUPS) for name in ("georgia", "sph")
)
TASKS = (EF, VIEW, FINDINGS, *CD)
DIM, RECORDINGS = 48, 120
SMALL = {
    "attention_probe": {"epochs": 3, "seeds": 2},
    "cross_validation": {"sizes": ("XS",), "search": "flat", "folds": 3},
    "representation": {
        "classifiers": ("logistic",),
        "folds": 3,
        "shown": 20,
        "records": 30,
        "map_settings": ((10, 0.1),),
    },
    "scratch": {"network": "small", "epochs": 1, "seeds": 1},
    "study": {"epochs": 3, "seeds": 2},
    "learning_curve": {"learners": ("probe",), "shares": (0.3, 1.0), "draws": 2},
    "finetune": {"epochs": 1, "seeds": 1, "rates": (1e-3,)},
    "confound": {"folds": 3, "inner": 2, "most": 60},
}
UNITS = {"study": "study_id"}
"""Units of protocols that reject single recordings."""
SLOW = (
    "cross_validation",
    "representation",
    "confound",
    "stress",
    "few_shot",
    "learning_curve",
    "study",
    "scratch",
    "transfer",
    "attention_probe",
)
ELSEWHERE = ("dense",)
"""Protocols tested by complete runs in `scoring`."""


class Texts(Leads):
    """Synthetic text tower and heads, with frames as parts."""

    frame_wise = True
    modalities = ("echo", "ecg")
    native = ("ef", "view", "cd", "findings")
    findings = 3


class Layers(BaseEncoder):
    """Network with two layers on the values of a recording."""

    name, sampling, sampling_rate = "versions/layers", None, None

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.network = torch.nn.Sequential(torch.nn.Linear(DIM, 8), torch.nn.Tanh(), torch.nn.Linear(8, DIM))

    def transform(self, recording: Ecg) -> torch.Tensor:
        """Return the first values of a record."""
        return torch.from_numpy(recording.signal.reshape(-1)[:DIM].copy())[None]

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        return self.network(parts)


def with_parts(data: TaskData) -> TaskData:
    """Attach the parts of recordings, which equal their vectors."""
    parts = {name: torch.from_numpy(data.embeddings.parts(row).copy()) for row, name in enumerate(data.rows["id"])}
    return replace(data, parts_of=parts.__getitem__)


ENCODERS = {"scratch": lambda: load_model("cardiobench/scratch-small").encoder, "finetune": Layers}
"""Encoders for protocols that train networks."""


def task_data(task: Task, shift: float = 0.0) -> TaskData:
    """Return recordings of three parts each with informative embeddings."""
    rng = np.random.default_rng(len(task.name))
    number = np.arange(RECORDINGS)
    patients = np.array([f"p{one // 2:02d}" for one in number])
    code = (number // 2 * 7) % (len(task.classes) or 5)
    signal = np.eye(DIM)[code] + 0.5 * np.eye(DIM)[(code + 5) % DIM]
    features = rng.integers(-60, 61, (RECORDINGS, 3, DIM)) / 80 + signal[:, None] + shift * np.sin(np.arange(DIM))
    labels = 40.0 + 6 * code + number % 3
    if task.kind == "multilabel":
        marked = np.stack([(number // 2 + k) % (k + 2) == 0 for k in range(len(task.classes))], axis=1)
        features[..., : len(task.classes)] += marked[:, None]
        labels = [";".join(name for name, has in zip(task.classes, row, strict=True) if has) for row in marked]
    elif task.classes:
        labels = np.array(task.classes)[code]
    rows = pd.DataFrame(
        {
            "id": [f"{task.dataset}{one}" for one in number],
            "patient_id": patients,
            "study_id": patients,
            "split": np.repeat(["train", "validation", "test"], [60, 24, 36]),
            "hospital": np.array(["north", "south"])[number // 2 % 3 % 2],
            "view": np.array(VIEWS)[number // 2 * 7 % len(VIEWS)],
            "sex": np.array(["F", "M"])[number // 2 % 2],
            "ef": 40.0 + 6 * (number % 5),
            task.target: labels,
        }
    )
    vectors = features.reshape(-1, DIM).astype(np.float32)
    return TaskData(task, rows, Embeddings(vectors, np.arange(0, 3 * RECORDINGS + 1, 3)), "mean")


def predictions(name: str) -> list:
    """Return the predictions of a protocol on each supported kind of task."""
    made, found = protocol(name, **SMALL.get(name, {})), []
    for asked in TASKS[:4]:
        task = replace(asked, unit_column=UNITS.get(name, asked.unit_column))
        try:
            made.check(task)
            for variant in made.variants(task):
                data = task_data(task)
                data = with_parts(data) if made.keeps_training else data
                output = made.predict(data, ENCODERS.get(name, Texts)(), variant)
                found += [output.values, output.indices, *output.refits]
            found += [
                one.select_dtypes("number").to_numpy() for one in made.floors(task_data(task).rows, task).values()
            ]
        except NotApplicable:
            continue
    return found


def analyses(name: str) -> list:
    """Return the values of an analysis for each of its subjects."""
    made, found = protocol(name, **SMALL.get(name, {})), []
    for subject, members in made.subjects(TASKS).items():

        def opened(task, change=None):
            data = task_data(task, 0.0 if change is None else 0.2 * change.severity)
            return data if change is None else replace(data, rows=data.rows)

        analysis = Analysis(
            subject, members, {"name": "a/b"}, 0, 20, opened, lambda task: references_of(task_data(task).rows, task)
        )
        try:
            output = made.analyze(analysis, Texts())
        except NotApplicable:
            continue
        found.append(list(numbers({name: [one.value, one.low, one.high] for name, one in output.values.items()})))
        found += [one.output.values for one in output.predictions]
    return found


def case(name: str) -> Case:
    """Return the case of a protocol."""

    def make(folder: Path) -> tuple[list, set[str]]:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            kind = protocol(name)
            if isinstance(kind, PredictionProtocol):
                return predictions(name), set()
            return (analyses(name) if isinstance(kind, AnalysisProtocol) else []), set()
        finally:
            torch.set_num_threads(threads)

    made = protocol(name, **SMALL.get(name, {}))
    scored = ("scoring",) if isinstance(made, AnalysisProtocol) else ()  # Its intervals are those of scoring.
    used = (f"protocol {one.name}" for one in made.uses())
    return Case(make, (f"protocol {name}", *used, *scored), slow=name in SLOW)


def disturbed(name: str) -> Case:
    """Return the case of the disturbances of a protocol, each on one clip or one record."""

    def make(folder: Path) -> tuple[list, set[str]]:
        found = []
        for task, recording in ((EF, clip()), (CD[0], ecg())):
            for one in protocol(name).perturbations((task,)):
                changed = one.apply(recording, one.severity, np.random.default_rng(0))
                found.append(changed.frames if isinstance(changed, Clip) else changed.signal)
        return found, set()

    return Case(make, (f"protocol {name}",))


def disturbs(name: str) -> bool:
    """Tell whether a protocol disturbs recordings."""
    made = protocol(name)
    return isinstance(made, AnalysisProtocol) and bool(made.perturbations(TASKS))


CASES = {f"protocol {name}": case(name) for name in list_protocols() if name not in ELSEWHERE}
CASES |= {f"disturbances of {name}": disturbed(name) for name in list_protocols() if disturbs(name)}
