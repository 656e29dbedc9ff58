"""Measure masks from frozen tokens at the size of CAMUS: seconds and peak memory of encoding, fit and prediction.

The script draws frames with a bright ring at random positions (500 patients of four frames), encodes them with a ViT-S of
random weights, stores the tokens, fits the read-out with all penalties and predicts the test frames. Every stage runs in a
separate process, first on a fifth of the patients to extrapolate the full cost. Run it alone:

    OMP_NUM_THREADS=2 python benchmarks/dense.py
    OMP_NUM_THREADS=2 python benchmarks/dense.py --patients 100

On a busy machine, use one thread and compare CPU seconds, because two threads wait for each other. The Dice only shows that the
read-out has learned something.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

CAMUS, FRAMES = 500, 4
HEIGHT, WIDTH = 480, 400
SPLITS = (("train", 0.8), ("validation", 0.9), ("test", 1.0))
STAGES = ("encode", "fit")


def draw(number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a frame uint8 (H, W, 3) and its mask: a cavity, a wall around it and an atrium below, with speckle."""
    rng = np.random.default_rng(number)
    x, y = np.meshgrid(np.linspace(-1, 1, WIDTH), np.linspace(-1.2, 1.2, HEIGHT))
    cx, cy, a, b = rng.normal(0, 0.12), rng.normal(-0.2, 0.12), rng.uniform(0.25, 0.4), rng.uniform(0.45, 0.65)
    radius = np.hypot((x - cx) / a, (y - cy) / b)
    mask = np.zeros((HEIGHT, WIDTH), np.uint8)
    mask[np.hypot((x - cx) / 0.35, (y - cy - b - 0.35) / 0.3) < 1] = 3
    mask[radius < 1.35] = 2
    mask[radius < 1] = 1
    grey = np.array([70, 30, 170, 45])[mask] * rng.gamma(4, 0.25, mask.shape)
    return np.repeat(grey.clip(0, 255).astype(np.uint8)[..., None], 3, axis=-1), mask


class Frames:
    """Source of recordings and labels for the drawn frames."""

    def __init__(self, patients: int):
        import pandas as pd

        from cardiobench.data.catalog import task

        self.task = task("camus/lv_seg")
        self.patients = np.repeat([f"patient{number:04d}" for number in range(patients)], FRAMES)
        self.ids = [f"{patient}#{number % FRAMES}" for number, patient in enumerate(self.patients)]
        shares = np.repeat(np.arange(patients) / patients, FRAMES)
        self.splits = [next(name for name, end in SPLITS if share < end) for share in shares]
        self.frame = pd.DataFrame({"id": self.ids, "fingerprint": "drawn"})

    def recording(self, number: int, sampling=None):
        """Return a frame as a clip of length one."""
        from cardiobench.data.media.types import Clip

        return Clip(draw(number)[0][None], np.zeros(1), 1)

    def labels(self, split: str) -> Iterator:
        """Yield the labels of a split."""
        from cardiobench.tasks.dense_label import DenseLabel

        for number, (name, patient) in enumerate(zip(self.ids, self.patients, strict=True)):
            if self.splits[number] == split:
                recording, _, frame = name.partition("#")
                yield DenseLabel(
                    task=self.task.name, unit=patient, patient=patient, split=split, recording=recording,
                    frame=int(frame), mask=draw(number)[1],
                )  # fmt: skip


def model():
    """Return a ViT-S/16 of random weights as a loaded model with tokens."""
    import timm
    import torch

    from cardiobench.embeddings.frame_tokens import token_model
    from cardiobench.models.base import LoadedModel
    from cardiobench.models.from_timm import TimmTower
    from cardiobench.models.image import ImageEncoder, picture_by_picture

    torch.manual_seed(0)
    network = timm.create_model("vit_small_patch16_224", num_classes=0)
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(network), is_training=False)
    tower, prepare = picture_by_picture(TimmTower(network, ""), transform)
    encoder = ImageEncoder(name="vit-s", revision="random", network=tower, prepare=prepare, preprocessing={})
    return token_model(LoadedModel(encoder, "benchmark", {}))


def store(folder: Path):
    """Return the store for the tokens."""
    from cardiobench.embeddings.store import EmbeddingStore

    return EmbeddingStore(folder, "vit-s", "camus", {"dtype": "float16"})


def encode(patients: int, folder: Path) -> dict[str, float]:
    """Encode all frames."""
    import torch

    from cardiobench.embeddings.extract import EncodeJob, extract

    frames, tokens = Frames(patients), store(folder)
    jobs = [EncodeJob(frames, number, tokens) for number in range(len(frames.ids))]
    assert not extract(model(), jobs, device=torch.device("cpu"), workers=0)
    return {}


def fit(patients: int, folder: Path) -> dict[str, float]:
    """Fit the read-out and predict the test frames."""
    from cardiobench.embeddings.frame_tokens import Letterbox
    from cardiobench.extensions.dense.data import DenseData, FrameKey
    from cardiobench.extensions.dense.geometry import measure
    from cardiobench.extensions.dense.protocol import DensePrediction, selection_error

    frames, tokens, reading = Frames(patients), store(folder), model().encoder
    box = Letterbox(HEIGHT, WIDTH)
    window = measure(reading.encoder, HEIGHT, reading.grid)
    keys = tuple(map(FrameKey, frames.ids, map(str, frames.patients), frames.splits))

    def read(ids: list[str]) -> np.ndarray:
        return tokens.load(ids, ["drawn"] * len(ids)).vectors.reshape(len(ids), *reading.grid, reading.width)

    data = DenseData(frames.task, keys, frames.labels, read, lambda label: box, lambda side: window, reading.grid)
    before = rss()
    started = time.perf_counter()
    processor = time.process_time()
    fitted = DensePrediction().fit(data)
    seconds, processor = time.perf_counter() - started, time.process_time() - processor
    errors = [
        selection_error(label, fitted.read_out.predict(box, window, grid), len(frames.task.structures), HEIGHT)
        for label, box, window, grid in data.with_tokens("test")
    ]
    kept = sum(split == "train" for split in frames.splits)
    return {"fit_s": seconds, "fit_cpu_s": processor, "dice": 1 - float(np.mean(errors)), "tokens_mb": kept * reading.dim * 2 / 1e6,
            "before_mb": before, "penalty": fitted.details["penalty"], "tried": len(fitted.details["penalties_tried"]),
            "validation_dice": 1 - fitted.details["validation_error"]}  # fmt: skip


def rss() -> float:
    """Return the peak memory of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def stage(name: str, patients: int, folder: Path) -> dict[str, float]:
    """Run a stage in a separate process; return its facts, wall seconds and peak memory."""
    line = [sys.executable, __file__, "--stage", name, "--patients", str(patients), "--folder", str(folder)]
    return json.loads(subprocess.run(line, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def main() -> None:
    """Run the stages on a fifth and on all of the patients; print extrapolated and measured values."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--patients", type=int, default=CAMUS)
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    if options.stage:
        started = time.perf_counter()
        facts = {"encode": encode, "fit": fit}[options.stage](options.patients, options.folder)
        facts |= {"seconds": time.perf_counter() - started, "cpu_s": time.process_time(), "peak_mb": rss()}
        print(json.dumps(facts))
        return
    small = options.patients // 5
    print(
        f"{'stage':<8}{'frames':>8}{'seconds':>10}{'CPU':>9}{'extrapolated':>14}{'peak MB':>9}{'tokens MB':>11}  facts"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name in STAGES:
            run = partial(stage, name)
            part, whole = (run(count, Path(folder) / str(count)) for count in (small, options.patients))
            for count, facts, guess in ((small, part, ""), (options.patients, whole, f"{5 * part['cpu_s']:.0f} CPU")):
                numbers = {
                    key: float(f"{value:.4g}")
                    for key, value in facts.items()
                    if key not in ("seconds", "cpu_s", "peak_mb")
                }
                print(f"{name:<8}{count * FRAMES:>8}{facts['seconds']:>10.1f}{facts['cpu_s']:>9.1f}{guess:>14}{facts['peak_mb']:>9.0f}"
                      f"{facts.get('tokens_mb', 0):>11.0f}  {numbers}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
