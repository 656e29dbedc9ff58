"""What a model still lacks of a dataset: encoded, or put together from what is stored."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cardiobench.data.dataset import OpenDataset
from cardiobench.data.media.types import Clip, Ecg, FrameSampling
from cardiobench.data.spec import DatasetSpec
from cardiobench.models.base import LoadedModel
from cardiobench.protocols.analysis import Perturbation
from cardiobench.runner.context import RunContext
from cardiobench.runner.plan import DatasetPlan


def encode_missing(
    model: LoadedModel,
    plans: Mapping[Perturbation | None, DatasetPlan],
    context: RunContext,
    clean: DatasetPlan | None = None,
) -> frozenset[str]:
    """Encode what the stores of one dataset lack, a stride of it on each process, and note what could not be encoded.

    A recording that is disturbed in several ways is decoded once for all of them. Where a disturbance only changes the
    order of the frames and the model looks at each frame by itself, its vectors are there already and are put in order.

    Args:
        model: the model.
        plans: disturbance -> what is needed under it; None for the recordings as they are.
        context: of the run.
        clean: where the vectors of the undisturbed recordings are.

    Returns:
        Ids of the recordings that could not be encoded, the same on every process.
    """
    from accelerate.utils import gather_object

    from cardiobench.embeddings.extract import EncodeJob, default_workers, extract

    accelerator, workers, seed = context.accelerator, context.config.workers, context.config.seed
    source = next(iter(plans.values())).source
    once = CachedDataset(source)
    mine = []
    for change, plan in plans.items():
        numbers = plan.to_encode[accelerator.process_index :: accelerator.num_processes]
        own = PerturbedDataset(once, change, seed) if change else once
        if clean and change and change.order and model.frame_wise:
            numbers = reorder(own, numbers, clean, plan, accelerator.process_index)
        mine += [EncodeJob(own, number, plan.store) for number in numbers]
    mine.sort(key=lambda piece: piece.number)
    kinds = len(plans) - (None in plans)
    label = f"{source.spec.name} with {model.name}" + (f", {kinds} disturbances" if kinds else "")
    with context.console.progress(label, len(mine)) as advance:
        failed = extract(
            model,
            mine,
            device=accelerator.device,
            rank=accelerator.process_index,
            batch_size=context.config.batch_size,
            workers=default_workers(accelerator.num_processes) if workers is None else workers,
            advance=advance,
        )
    everyone = sorted({(failure.id, failure.reason) for failure in gather_object(failed)})
    context.summary.failures += [(model.name, source.spec.name, name, reason) for name, reason in everyone]
    return frozenset(name for name, _ in everyone)


class CachedDataset:
    """A dataset that still holds the recording it gave last, for the next disturbance of it."""

    def __init__(self, source: OpenDataset):
        self.source, self.last = source, (None, None)

    @property
    def spec(self) -> DatasetSpec:
        """Facts of the dataset."""
        return self.source.spec

    @property
    def frame(self) -> pd.DataFrame:
        """One line a recording."""
        return self.source.frame

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg:
        """The recording of that line; not to be written to."""
        if self.last[0] != (number, sampling):
            self.last = (number, sampling), self.source.recording(number, sampling)
        return self.last[1]


@dataclass(frozen=True)
class PerturbedDataset:
    """A dataset of which every recording is disturbed before a model sees it; the rest is the dataset itself.

    Attributes:
        source: the dataset.
        change: the disturbance.
        seed: of its draws, together with the recording's id.
    """

    source: CachedDataset | OpenDataset
    change: Perturbation
    seed: int

    @property
    def spec(self) -> DatasetSpec:
        """Facts of the dataset."""
        return self.source.spec

    @property
    def frame(self) -> pd.DataFrame:
        """One line a recording."""
        return self.source.frame

    def recording(self, number: int, sampling: FrameSampling | None = None) -> Clip | Ecg:
        """The disturbed recording of that line."""
        return self.change.apply(self.source.recording(number, sampling), self.change.severity, self.draws(number))

    def draws(self, number: int) -> np.random.Generator:
        """The generator of that line's disturbance."""
        name = f"{self.frame['id'].iloc[number]} {self.seed}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big"))


def reorder(
    changed: PerturbedDataset, numbers: np.ndarray, clean: DatasetPlan, plan: DatasetPlan, rank: int
) -> np.ndarray | list[int]:
    """Store the vectors of recordings whose frames are shown in another order; returns the lines that still have to be encoded.

    Args:
        changed: the dataset under the disturbance.
        numbers: of its lines.
        clean: where the frames' vectors in their own order are.
        plan: where those in the new order go.
        rank: of this process.
    """
    asked = changed.frame.iloc[numbers]
    known = np.delete(numbers, clean.store.missing(asked["id"], asked["fingerprint"]))
    if len(known):
        lines = changed.frame.iloc[known]
        stored = clean.store.load(lines["id"], lines["fingerprint"])
        parts = [stored.parts(place) for place in range(len(known))]
        orders = [
            changed.change.order(len(own), changed.change.severity, changed.draws(number))
            for own, number in zip(parts, known, strict=True)
        ]
        plan.store.append(
            list(lines["id"]),
            list(lines["fingerprint"]),
            [own[order] for own, order in zip(parts, orders, strict=True)],
            rank=rank,
            device=", ".join(stored.devices),
        )
    return sorted(set(numbers) - set(known))
