"""Dense tasks of a run: tokens of the labelled frames are stored, a read-out is fitted, its masks or points are scored."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import MissingData, NotApplicable
from cardiobench.core.io import sha256_of_json
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.dense import DenseLabel
from cardiobench.data.media.types import Clip, FrameSampling
from cardiobench.data.spec import Task
from cardiobench.embeddings.extract import EncodeJob
from cardiobench.embeddings.frame_tokens import FrameTokens, Letterbox, token_model
from cardiobench.embeddings.key import embedding_key
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.models.baselines.pixel_patches import pixel_patches
from cardiobench.models.load import load_model
from cardiobench.protocols.dense.data import DenseData, FrameKey, frame_id
from cardiobench.protocols.dense.geometry import Window, measure
from cardiobench.protocols.dense.head import cells_per_token
from cardiobench.protocols.dense.oracle import GridOracle
from cardiobench.protocols.dense.protocol import DensePrediction, FittedReadOut
from cardiobench.protocols.dense.readouts import MeanMask
from cardiobench.protocols.dense.variants import DenseVariant
from cardiobench.results.predictions_file import load_cached_score, save_scored
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.cell import BaseCell, load_or_compute, model_facts, seen_in_pretraining
from cardiobench.runner.context import RunContext
from cardiobench.runner.encode import encode_jobs
from cardiobench.runner.evaluate import dataset_facts
from cardiobench.runner.processes import share
from cardiobench.runner.references import data_warnings, expected_units, first_patients, limited_references
from cardiobench.scoring.dense import DenseScorer, score_dense
from cardiobench.scoring.mask_volumes import PREDICTED

RANDOM_VIT = "cardiobench/random-vit"


@dataclass(frozen=True)
class LabelledFrames:
    """The labelled frames of a task, as a dataset of single frames.

    Attributes:
        dataset: they are frames of.
        task: whose labels they have.
        labels: of the frames that take part, without masks and points.
    """

    dataset: OpenDataset
    task: Task
    labels: tuple[DenseLabel, ...]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per frame: the id of its tokens, and the fingerprint of its recording."""
        marks = self.dataset.frame.set_index("id")["fingerprint"]
        names = [frame_id(label) for label in self.labels]
        return pd.DataFrame({"id": names, "fingerprint": [marks[label.recording] for label in self.labels]})

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip:
        """Read a frame, as a clip of one or with the clip around it; raises `BadMedia` naming its file."""
        return self.dataset.labelled_frame(self.labels[number], sampling)

    def read(self, split: str) -> Iterator[DenseLabel]:
        """Yield the labels of the recordings of a split with their masks or points."""
        rows, members = self.dataset.task_rows(self.task), {label.recording for label in self.labels}
        return self.dataset.dense_labels(self.task, rows[(rows["split"] == split) & rows["id"].isin(members)])

    def box(self, label: DenseLabel) -> Letterbox:
        """Return the square around a label's frame; where it has no mask, the frame is read for its size."""
        if label.mask is not None:
            return Letterbox(*label.mask.shape)
        return self._box_of_points(frame_id(label))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.frame["id"])}

    @cached_property
    def _boxes(self) -> dict[str, Letterbox]:
        return {}

    def _box_of_points(self, name: str) -> Letterbox:
        if name not in self._boxes:
            self._boxes[name] = Letterbox(*self.recording(self._numbers[name]).frames.shape[1:3])
        return self._boxes[name]


def labelled_frames(dataset: OpenDataset, task: Task, protocol: DensePrediction, limit: int | None) -> LabelledFrames:
    """List the labelled frames that take part; every label is read once to see whether it is whole."""
    rows = first_patients(dataset.task_rows(task), limit)
    labels = [replace(label, mask=None, points=None) for label in dataset.dense_labels(task, rows)]
    return LabelledFrames(dataset, task, tuple(protocol.select(labels)))


@dataclass(frozen=True)
class TokenPlan:
    """Store of the tokens of the labelled frames.

    Attributes:
        model: whose encoder gives tokens.
        frames: of the task.
        store: of the tokens.
    """

    model: LoadedModel
    frames: LabelledFrames
    store: EmbeddingStore

    @property
    def encoder(self) -> FrameTokens:
        """The encoder of single frames."""
        assert isinstance(self.model.encoder, FrameTokens)
        return self.model.encoder

    def data(self, unreadable: frozenset[str]) -> DenseData:
        """Return labels and tokens as the protocol sees them.

        Args:
            unreadable: ids of frames without tokens.
        """
        grid, width, source = self.encoder.grid, self.encoder.width, self.encoder.encoder
        marks = dict(zip(self.frames.frame["id"], self.frames.frame["fingerprint"], strict=True))

        def tokens(ids: list[str]) -> np.ndarray:
            return self.store.load(ids, [marks[name] for name in ids]).vectors.reshape(len(ids), *grid, width)

        @cache
        def window(side: int) -> Window:
            return measure(source, side, grid)

        keys = tuple(
            FrameKey(frame_id(label), label.patient, label.split)
            for label in self.frames.labels
            if frame_id(label) not in unreadable
        )
        frames = self.frames
        return DenseData(frames.task, keys, frames.read, tokens, frames.box, window, grid)


def plan_tokens(
    model: LoadedModel, frames: LabelledFrames, protocol: DensePrediction, config: RunConfig, moving: bool = False
) -> TokenPlan:
    """Return where a model's tokens of the labelled frames are.

    Raises:
        NotApplicable: the model has no tokens with a place in the frame, or none with a time in a moving clip.
    """
    reading = token_model(model, protocol.full, moving)
    key = {**embedding_key(reading, frames.dataset), "dtype": "float16"}
    store = EmbeddingStore(config.cache_dir / "tokens", model.name, frames.dataset.spec.name, key)
    return TokenPlan(reading, frames, store)


def encode_frames(plan: TokenPlan, context: RunContext) -> frozenset[str]:
    """Encode the frames that the store lacks, a stride of them on each process; returns the ids of those that failed."""
    frame = plan.frames.frame
    (absent,) = share([plan.store.missing(frame["id"], frame["fingerprint"])])
    accelerator = context.accelerator
    stride = absent[accelerator.process_index :: accelerator.num_processes]
    jobs = [EncodeJob(plan.frames, int(number), plan.store) for number in stride]
    return encode_jobs(plan.model, jobs, plan.frames.dataset.spec.name, context, note=", single frames")


@dataclass(frozen=True)
class DenseCell(BaseCell[ScoreResult]):
    """One model, dense task and read-out.

    Attributes:
        read_out: of the protocol.
        plans: name -> tokens of the model (`""`) and of the floors.
        unreadable: name -> ids of frames without tokens.
        floors: floors that were scored already, by their key; shared by all models of a run.
    """

    protocol: DensePrediction
    read_out: DenseVariant
    plans: Mapping[str, TokenPlan]
    unreadable: Mapping[str, frozenset[str]]
    floors: dict[str, DenseScorer]

    @property
    def task(self) -> Task:
        """The task that is predicted."""
        return self.tasks[0]

    @property
    def variant(self) -> str:
        """Name of the read-out."""
        return self.read_out.name

    @property
    def dataset(self) -> OpenDataset:
        """The dataset of the task."""
        return self.plans[""].frames.dataset

    @property
    def label(self) -> str:
        """The protocol with its variant."""
        return f"{self.protocol.name}.{self.variant}" if self.variant else self.protocol.name

    def inputs(self) -> Mapping[str, Any]:
        """Return dataset, tokens, variant and what could not be read."""
        return {
            "dataset": self.dataset.table.digest,
            "tokens": {name: plan.store.key for name, plan in self.plans.items()},
            "variant": self.variant,
            "unreadable": {name: sorted(ids) for name, ids in self.unreadable.items()},
        }

    def load_cached(self) -> ScoreResult | None:
        """Return the saved result if its key matches and its predictions are there, else None."""
        return load_cached_score(self.path, self.key)


def run_dense(
    model: LoadedModel,
    tasks: Sequence[Task],
    datasets: Mapping[str, OpenDataset],
    protocols: Sequence[DensePrediction],
    context: RunContext,
) -> None:
    """Run the dense tasks of one model.

    Args:
        model: loaded, on the device.
        tasks: all of the run; those without masks and landmarks do not apply.
        datasets: name -> dataset whose data is here.
        protocols: `dense`, with its options.
        context: of the run.
    """
    for protocol in protocols:
        for task in tasks:
            if task.dataset not in datasets or datasets[task.dataset].spec.modality not in model.modalities:
                continue
            try:
                protocol.check(task)
                frames = labelled_frames(datasets[task.dataset], task, protocol, context.config.limit)
                plans = {"": plan_tokens(model, frames, protocol, context.config)}
            except (NotApplicable, MissingData) as error:  # a prepared folder holds no masks
                context.summary.not_applicable.append((model.name, task.name, protocol.name, str(error)))
                continue
            for floor in floor_models(model, context):
                plans[floor.name.rpartition("/")[2]] = plan_tokens(floor, frames, protocol, context.config)
            _run_variants(model, task, protocol, plans, context)


def _run_variants(
    model: LoadedModel, task: Task, protocol: DensePrediction, plans: Mapping[str, TokenPlan], context: RunContext
) -> None:
    """Encode what is lacking and evaluate each read-out; a moving clip has tokens of its own, and the floors of stills."""
    unreadable = {name: encode_frames(plan, context) for name, plan in plans.items()}
    for read_out in protocol.read_outs(task):
        own, own_unreadable = plans, unreadable
        if read_out.further == "clip":
            try:
                moving = plan_tokens(model, plans[""].frames, protocol, context.config, moving=True)
            except NotApplicable as error:
                label = f"{protocol.name}.{read_out.name}"
                context.summary.not_applicable.append((model.name, task.name, label, str(error)))
                continue
            own = {**plans, "": moving}
            own_unreadable = {**unreadable, "": encode_frames(moving, context)}
        if context.accelerator.is_main_process:
            cell = DenseCell(
                model,
                protocol,
                context.config,
                task.name,
                (task,),
                read_out,
                own,
                own_unreadable,
                context.dense_floors,
            )
            load_or_compute(cell, evaluate_dense, context)
    context.accelerator.wait_for_everyone()


def floor_models(model: LoadedModel, context: RunContext) -> list[LoadedModel]:
    """Return what a model is compared with: raw pixels, and a network that was never trained unless it is that one."""
    untrained = [] if model.name == RANDOM_VIT else [load_model(RANDOM_VIT, device=context.accelerator.device)]
    return [pixel_patches(), *untrained]


def evaluate_dense(cell: DenseCell) -> tuple[ScoreResult, list[Path]]:
    """Fit, predict, score and save one cell.

    Returns:
        The result, and the files that were written.

    Raises:
        NotApplicable: there is nothing to learn from, or a transform that is no crop.
    """
    started = time.perf_counter()
    config, task, plan = cell.config, cell.task, cell.plans[""]
    data = plan.data(cell.unreadable[""])
    fitted = cell.protocol.fit(data, cell.read_out)
    scorer, ceilings, answers, geometry = answer_test(data, fitted)
    floors = {"best_uninformed": ceilings.pop("mean"), **ceilings}
    for name in cell.plans:
        if name:
            floors[name.replace("-", "_")] = floor_scorer(cell, name)
    ef = listed_fractions(cell.dataset, task)
    references = limited_references(cell.dataset, task, config.limit)
    result = score_dense(
        scorer,
        references,
        floors=floors,
        expected=expected_units(cell.dataset, task, references, config.limit),
        ef=ef,
        seed=config.seed,
        protocol=cell.protocol.name,
        variant=cell.variant,
        options={**cell.protocol.get_params(), **fitted.details, **geometry},
        dataset=dataset_facts(cell.dataset, config.limit),
        model=model_facts(cell.model),
        seen_in_pretraining=seen_in_pretraining(cell.model.name, cell.dataset.spec.name),
        warnings=(*cell.model.warnings, *data_warnings(cell.dataset, config.limit)),
    )
    stamp = {
        **cell.provenance(),
        "embeddings": plan.store.key,
        "seconds": round(time.perf_counter() - started, 3),
    }
    result = replace(result, stamp={**result.stamp, **stamp})
    return save_scored(result, predictions_table(scorer, answers, ef), cell.path)


def predictions_table(
    scorer: DenseScorer, answers: Sequence[bytes | list[float]], ef: pd.Series | None
) -> pd.DataFrame:
    """Return what is saved beside a result: one row per frame with its numbers and its answer.

    Args:
        scorer: of the answers.
        answers: a mask as PNG, or x and y of each point in turn.
        ef: listed ejection fraction of each unit, %.

    Returns:
        The scorer's columns, `answer`, and of the unit the listed ejection fraction (`y_true`) and that of the predicted
        masks (`y_pred`), %; NaN where there is none.
    """
    frame = scorer.frame.assign(answer=answers)
    listed = pd.Series(dtype=np.float64) if ef is None else ef
    measured = scorer.volumes.fractions(PREDICTED) if ef is not None else listed
    return frame.assign(y_true=frame["id"].map(listed), y_pred=frame["id"].map(measured))


def answer_content(answer: np.ndarray) -> bytes | list[float]:
    """Return a mask uint8 (H, W) as PNG, points (k, 2) as a list of their coordinates."""
    if answer.ndim == 2 and answer.dtype == np.uint8:
        content = BytesIO()
        Image.fromarray(answer).save(content, format="PNG")
        return content.getvalue()
    return [float(value) for value in answer.ravel()]


def answer_test(
    data: DenseData, fitted: FittedReadOut
) -> tuple[DenseScorer, dict[str, DenseScorer], list[bytes | list[float]], dict[str, Any]]:
    """Answer the test frames, one at a time.

    Returns:
        The scores of the read-out; those of the mean of the training labels (`mean`) and of the best that the grids of
        tokens and of cells can express; the answers; and what the model sees: the mean share of a frame's pixels that it
        does not, the mean window (left, top, width and height in shares of the letterboxed square), and the largest distance
        of that map from the measured places, pixels.
    """
    s, structures = cells_per_token(data.grid), len(data.task.structures)
    mean = fitted.mean if isinstance(fitted.mean, MeanMask) else None
    oracles = {"cell_grid_oracle": GridOracle(s * data.grid[0], s * data.grid[1], structures, mean)}
    if mean is not None:  # one point per token would say nothing: a map is wider than that
        oracles["token_grid_oracle"] = GridOracle(*data.grid, structures, mean)
    names = ("", "mean", *oracles)
    scorers = {name: DenseScorer(data.task, with_volumes=not name) for name in names}
    unseen: list[float] = []
    windows: list[Window] = []
    answers: list[bytes | list[float]] = []
    for label, box, window, tokens in data.with_tokens("test"):
        unseen.append(window.unseen(box))
        windows.append(window)
        answer = fitted.read_out.predict(box, window, tokens)
        answers.append(answer_content(answer))
        scorers[""].update(label, answer)
        scorers["mean"].update(label, fitted.mean.predict(box, window, tokens))
        for name, oracle in oracles.items():
            scorers[name].update(label, oracle.predict(label, box, window))
    if not unseen:
        raise NotApplicable(f"{data.task.name} has no labelled test frames here")
    edges = np.mean([(one.left, one.top, one.width, one.height) for one in windows], axis=0)
    geometry = {
        "unseen_share": float(np.mean(unseen)),
        "window": edges.tolist(),
        "window_residual": max(one.residual for one in windows),
    }
    return scorers.pop(""), scorers, answers, geometry


def floor_scorer(cell: DenseCell, name: str) -> DenseScorer:
    """Return the scores of a floor's tokens under the same protocol; computed once for all models of a run."""
    plan = cell.plans[name]
    read_out = replace(cell.read_out, further="") if cell.read_out.further == "clip" else cell.read_out
    key = sha256_of_json([plan.store.key, cell.task.name, read_out.name, cell.dataset.table.digest, cell.config.limit])
    if key not in cell.floors:
        data = plan.data(cell.unreadable[name])
        fitted = cell.protocol.fit(data, read_out)
        scorer = DenseScorer(data.task, with_volumes=False)
        for label, box, window, tokens in data.with_tokens("test"):
            scorer.update(label, fitted.read_out.predict(box, window, tokens))
        cell.floors[key] = scorer
    return cell.floors[key]


def listed_fractions(dataset: OpenDataset, task: Task) -> pd.Series | None:
    """Return the ejection fraction that the release lists for each unit of a task, %; None where it lists none."""
    if "ef" not in dataset.frame or task.kind != "segmentation":
        return None
    return dataset.frame.groupby(task.unit_column)["ef"].first().dropna()
