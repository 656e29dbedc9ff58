"""Train a network on crops of stored recordings and average its predictions over windows."""

from typing import Any

import numpy as np
import torch

from cardiobench.data.media.types import LEADS
from cardiobench.embeddings.cost import count_work
from cardiobench.extensions.scratch.encoder import SIZE
from cardiobench.extensions.scratch.recipes import Recipe
from cardiobench.models.device import name_of
from cardiobench.models.signal import windows
from cardiobench.protocols.base import TaskData
from cardiobench.protocols.training.loop import Schedule, train_network
from cardiobench.protocols.training.objective import TrainingObjective, one_thread


class ScratchTraining:
    """Training of networks on the recordings of a task.

    Args:
        data: Recordings of the task.
        fit: Training rows.
        held: Validation rows, which select the epoch.
        recipe: Network and training recipe.
        epochs: Number of epochs.
        device: Training device.
    """

    def __init__(
        self, data: TaskData, fit: np.ndarray, held: np.ndarray, recipe: Recipe, epochs: int, device: torch.device
    ):
        self.data, self.fit, self.held, self.recipe, self.epochs, self.device = data, fit, held, recipe, epochs, device
        self.objective = TrainingObjective(data, fit)
        self.time = bool(np.diff(data.embeddings.offsets).max() > 1)

    def train(self, seed: int) -> tuple[torch.nn.Module, dict[str, Any]]:
        """Train a network and return its best epoch, with the number and quality of that epoch.

        Args:
            seed: Random seed of initial weights, order, crops and dropout.
        """
        recipe, work = self.recipe, self.data.work
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            network = recipe.build(self.objective.outputs, self.time).to(self.device)
        groups = [
            {"params": list(network.parameters()), "lr": recipe.learning_rate, "weight_decay": recipe.weight_decay}
        ]
        schedule = Schedule(self.epochs, recipe.batch_size, recipe.micro_batch, seed)
        checkpoint = work / f"{self.device.type}-{seed}.pt" if work else None
        trained = train_network(
            network, groups, self.objective, self.fit, self.held, self.crops, self.predict, schedule, checkpoint
        )
        parameters, flops = self.work(trained.network)
        return trained.network, {
            "epoch": trained.epoch,
            "validation_quality": trained.quality,
            "parameters": parameters,
            "flops": flops,
            "trained_on": name_of(self.device),
        }

    def crops(self, rows: np.ndarray, generator: np.random.Generator | None) -> torch.Tensor:
        """Sample one random window per recording, (rows, ...)."""
        chosen = []
        for row in rows:
            whole = self._recording(row)
            room = max(len(whole) - self._window, 0)
            start = int(generator.integers(room + 1)) if generator else 0
            chosen.append(self._windows(whole[start : start + self._window])[0])
        return self._tensor(np.stack(chosen))

    @torch.no_grad()
    def predict(self, network: torch.nn.Module, rows: np.ndarray) -> np.ndarray:
        """Predict recordings by averaging over consecutive windows. Returns (n,), or (n, classes)."""
        answers = []
        with one_thread():
            for batch in np.split(rows, range(self.recipe.micro_batch, len(rows), self.recipe.micro_batch)):
                cut = [self._windows(self._recording(row)) for row in batch]
                ends = np.cumsum([len(one) for one in cut])
                pieces = self._tensor(np.concatenate(cut)).split(self.recipe.micro_batch)
                outputs = torch.cat([network(piece) for piece in pieces]).double().cpu().numpy()
                answers += [part.mean(axis=0) for part in np.split(self.objective.answers(outputs), ends[:-1])]
        return np.array(answers).reshape(len(rows), *np.shape(answers[0])) if answers else np.empty(0)

    def work(self, network: torch.nn.Module) -> tuple[int, float]:
        """Return the number of used parameters and the mean operations per recording over all windows."""
        rows = self.data.indices("test")
        cut = [self._windows(self._recording(row)) for row in rows]
        sizes, flops = count_work(lambda: network(self._tensor(cut[0][:1])))
        return sum(sizes.values()), flops * sum(map(len, cut)) / len(rows)

    @property
    def _window(self) -> int:
        return self.recipe.window if self.time else 1

    def _recording(self, row: int) -> np.ndarray:
        """Return a recording: (samples, 12) in millivolts, or (frames, 112 x 112) from 0 to 255."""
        parts = self.data.embeddings.parts(int(row))
        return parts.reshape(-1, len(LEADS)) if self.recipe.modality == "ecg" else parts

    def _windows(self, whole: np.ndarray) -> np.ndarray:
        """Cut a recording into consecutive windows (W, window, ...).

        ECGs are padded with zeros, and clips with their last frame.
        """
        if self.recipe.modality == "echo" and len(whole) < self._window:
            whole = np.concatenate([whole, np.repeat(whole[-1:], self._window - len(whole), axis=0)])
        return windows(whole, self._window)

    def _tensor(self, cut: np.ndarray) -> torch.Tensor:
        """Convert windows to network input: (W, 12, samples), or (W, 1, frames, 112, 112) in [-1, 1]."""
        tensor = torch.from_numpy(np.array(cut, dtype=np.float32)).to(self.device)
        if self.recipe.modality == "ecg":
            return tensor.transpose(1, 2).contiguous()
        return tensor.reshape(len(tensor), 1, -1, SIZE, SIZE) / 127.5 - 1
