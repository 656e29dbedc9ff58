"""Does decoding hold the encoder up? Clips per second of the encoding loop against its own limit, and a simple loop's.

    python benchmarks/encode.py --workers 1
    python benchmarks/encode.py --architecture vit_base_patch16_224 --height 600 --width 800

Three ways to the embeddings of the same clips, taking turns in this process:

    real        `cardiobench.embeddings.extract`: decode and transform in workers, batches across clips, uint8 to the device
    synthetic   the encoder alone on frames that are there already, in the same batches: the limit of this machine
    simple      one clip at a time, as the first CardioBench does: the whole clip decoded by OpenCV in this process, every
                frame through the library's own transform, float32 to the device

The network has random weights (its values do not matter here). "real" and "simple" give the same vectors, which is checked.
Median of the runs; within three minutes on two cores. With a GPU wall time: the device must not wait. Without one CPU time of this process and its workers,
because decoding takes from the very cores that encode, and because it stands still while other work runs beside it.
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pandas as pd
import timm
import torch
from decode import speckle, write
from PIL import Image
from timm.models import save_for_hf

from cardiobench.data.media import FrameSampling, read_clip
from cardiobench.embeddings.extract import EncodeJob, PartEncoder, default_workers, extract
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.load import load_model

FRAMES = 16


class Clips:
    """The recordings as the encoding loop asks for them."""

    spec = SimpleNamespace(name="benchmark")

    def __init__(self, path: Path, count: int):
        self.path = path
        self.frame = pd.DataFrame({"id": [f"clip{n}" for n in range(count)], "fingerprint": ["s"] * count})

    def recording(self, number: int, sampling: FrameSampling):
        """Read the clip; all numbers stand for the same file."""
        return read_clip(self.path, sampling)


def real(model, clips: Clips, device: torch.device, batch_size: int, workers: int) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore(Path(folder), "benchmark", "benchmark", {})
        pieces = [EncodeJob(clips, number, store) for number in range(len(clips.frame))]
        failed = extract(model, pieces, device=device, batch_size=batch_size, workers=workers)
        assert not failed, failed
        return store.load(list(clips.frame["id"]), list(clips.frame["fingerprint"])).vectors


def synthetic(model, parts: torch.Tensor, device: torch.device, batch_size: int, count: int) -> None:
    encode = PartEncoder(model, device)
    for start in range(0, count, batch_size):
        size = min(batch_size, count - start)
        encode(parts.repeat(size, 1, 1, 1))


@torch.no_grad()
def simple(network, transform, clips: Clips, device: torch.device) -> np.ndarray:
    vectors = []
    for _ in clips.frame["id"]:
        capture, frames = cv2.VideoCapture(str(clips.path)), []
        while (read := capture.read())[0]:
            frames.append(cv2.cvtColor(read[1], cv2.COLOR_BGR2RGB))
        pixels = torch.stack([transform(Image.fromarray(frame)) for frame in frames[:FRAMES]])
        vectors.append(network(pixels.to(device)).cpu().numpy())
    return np.concatenate(vectors)


def clock(device: torch.device) -> float:
    """Seconds: of the wall where a GPU works, else of the processor in this process and in workers that have ended."""
    return time.perf_counter() if device.type == "cuda" else sum(os.times()[:4])


def timed(device: torch.device, function, *arguments) -> tuple[float, object]:
    start = clock(device)
    result = function(*arguments)
    return clock(device) - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architecture", default="vit_small_patch16_224", help="of timm (default: %(default)s)")
    parser.add_argument("--clips", type=int, help="default: 64 with a GPU, 4 without one")
    parser.add_argument("--height", type=int, default=112)
    parser.add_argument("--width", type=int, default=112)
    parser.add_argument("--length", type=int, default=100, help="frames of a clip (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, help="recordings; default: 8 with a GPU, 2 without one")
    parser.add_argument("--workers", type=int, default=default_workers(1))
    parser.add_argument("--repeats", type=int, default=2, help="after a first one that does not count")
    parser.add_argument("--precision", default="auto")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    arguments.clips = arguments.clips or (64 if device.type == "cuda" else 4)
    arguments.batch_size = arguments.batch_size or (8 if device.type == "cuda" else 2)
    where = (
        torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads of torch"
    )
    goal = 0.8 if device.type == "cuda" else 0.9
    cv2.setNumThreads(1)
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        network = timm.create_model(arguments.architecture, num_classes=0).eval()
        save_for_hf(network, Path(folder) / "model", safe_serialization=True)
        model = load_model(str(Path(folder) / "model"), device=device, precision=arguments.precision)
        transform = timm.data.create_transform(**timm.data.resolve_model_data_config(network), is_training=False)
        network.to(device)
        path = write(
            Path(folder) / "clip.avi", speckle(arguments.length, arguments.height, arguments.width), "mjpeg", "yuvj420p"
        )
        clips = Clips(path, arguments.clips)
        parts = model.encoder.transform(clips.recording(0, model.sampling))
        ways = {
            "real": (real, model, clips, device, arguments.batch_size, arguments.workers),
            "synthetic": (synthetic, model, parts, device, arguments.batch_size, arguments.clips),
            "simple": (simple, network, transform, clips, device),
        }
        taken, made = {name: [] for name in ways}, {}
        for _ in range(arguments.repeats + 1):
            for name, way in ways.items():
                seconds, made[name] = timed(device, *way)
                taken[name].append(seconds)
        tolerance = 1e-3 if model.precision == "fp32" else 0.2
        np.testing.assert_allclose(made["real"], made["simple"], atol=tolerance, rtol=0)
    speed = {name: arguments.clips / statistics.median(seconds[1:]) for name, seconds in taken.items()}
    print(f"Python {platform.python_version()}, torch {torch.__version__}; {where}; {os.cpu_count()} cores", end="; ")
    print(
        f"{arguments.architecture}, {model.precision}; {arguments.workers} workers, batches of {arguments.batch_size}"
    )
    print(f"clips of {arguments.length} frames {arguments.height} x {arguments.width}, {FRAMES} of them encoded")
    for name, value in speed.items():
        print(f"{name:10}{value:8.2f} clips/s{'' if device.type == 'cuda' else ' of one core'}")
    held = speed["real"] / speed["synthetic"]
    print(f"real / synthetic {held:.2f}  >= {goal:g} {'met' if held >= goal else 'MISSED'}")
    print(f"real / simple    {speed['real'] / speed['simple']:.2f}")


if __name__ == "__main__":
    main()
