"""Check whether decoding slows the encoder down: clips per second of the encoding loop, its limit, and a simple loop.

    python benchmarks/encode.py --workers 1
    python benchmarks/encode.py --architecture vit_base_patch16_224 --height 600 --width 800

Three methods compute the embeddings of the same clips, alternating in this process:

    real        `cardiobench.embeddings.extract`: decode and transform in workers, batches across clips, uint8 to the device
    synthetic   the encoder alone on frames in memory, in the same batches: the limit of this machine
    simple      one clip at a time, as in the first CardioBench: OpenCV decodes the whole clip in this process, the library
                transforms each frame, and float32 is sent to the device

The network has random weights, which do not affect the time. The script checks that "real" and "simple" give equal vectors, and
prints the median of the runs. With a GPU, it measures wall time, because the device must not wait. Without a GPU, it measures
CPU time of this process and its workers, because decoding and encoding share the cores, and other load does not affect CPU time.

Defaults with a GPU: a ViT-B, as many clips as the encoder alone needs ten seconds for, one worker per core except one and at
most sixteen, target 0.8. Without a GPU: a ViT-S, four clips, target 0.9. Both take at most three minutes on two cores.
"""

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pandas as pd
import timm
import torch
from decode import speckle, write
from PIL import Image
from timm.models import save_for_hf

from cardiobench.data.media import read_clip
from cardiobench.embeddings.extract import EncodeJob, PartEncoder, default_workers, extract
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.load import load_model

FRAMES = 16
SECONDS = 10  # Seconds of the encoder alone on a GPU, long enough to make the start of workers negligible.
SIMPLE_CLIPS = 32  # Maximum number of clips in the simple loop.


class Copies:
    """A dataset in the form needed by the encoding loop, whose recordings are all the same file, read anew each time."""

    spec = SimpleNamespace(name="benchmark")

    def __init__(self, read: Callable[[], Any], count: int):
        self.read = read
        self.frame = pd.DataFrame({"id": [f"r{n}" for n in range(count)], "fingerprint": ["s"] * count})

    def recording(self, number: int, sampling: Any) -> Any:
        """Read the recording."""
        return self.read()


def real(model, clips: Copies, device: torch.device, batch_size: int, workers: int) -> np.ndarray:
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddingStore(Path(folder), "benchmark", "benchmark", {})
        pieces = [EncodeJob(clips, number, store) for number in range(len(clips.frame))]
        failed = extract(model, pieces, device=device, batch_size=batch_size, workers=workers)
        assert not failed, failed
        return store.load(list(clips.frame["id"]), list(clips.frame["fingerprint"])).vectors


def synthetic(model, parts: torch.Tensor, device: torch.device, batch_size: int, count: int) -> None:
    encode, batch = PartEncoder(model, device), parts.repeat(batch_size, *(1 for _ in parts.shape[1:])).to(device)
    for start in range(0, count, batch_size):
        encode(batch[: min(batch_size, count - start) * len(parts)])


def enough_clips(model, parts: torch.Tensor, device: torch.device, batch_size: int) -> int:
    """Warm up the device; return the clips for which the encoder alone needs `SECONDS` on a GPU, or a few without one."""
    count = 32 * batch_size if device.type == "cuda" else 1
    for _ in range(2):
        seconds, _ = timed(device, synthetic, model, parts, device, batch_size, count)
    return max(count, round(SECONDS * count / seconds)) if device.type == "cuda" else 4


@torch.no_grad()
def simple(network, transform, path: Path, count: int, device: torch.device) -> np.ndarray:
    vectors = []
    for _ in range(min(count, SIMPLE_CLIPS)):
        capture, frames = cv2.VideoCapture(str(path)), []
        while (read := capture.read())[0]:
            frames.append(cv2.cvtColor(read[1], cv2.COLOR_BGR2RGB))
        pixels = torch.stack([transform(Image.fromarray(frame)) for frame in frames[:FRAMES]])
        vectors.append(network(pixels.to(device)).cpu().numpy())
    return np.concatenate(vectors)


def clock(device: torch.device) -> float:
    """Return seconds: wall time with a GPU, otherwise CPU time of this process and its finished workers."""
    return time.perf_counter() if device.type == "cuda" else sum(os.times()[:4])


def timed(device: torch.device, function, *arguments) -> tuple[float, object]:
    start = clock(device)
    result = function(*arguments)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return clock(device) - start, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--architecture", help="architecture in timm (default: ViT-B/16 with a GPU, else ViT-S/16)")
    parser.add_argument("--clips", type=int, help=f"number of clips (default: {SECONDS} s of work with a GPU, else 4)")
    parser.add_argument("--height", type=int, default=112)
    parser.add_argument("--width", type=int, default=112)
    parser.add_argument("--length", type=int, default=100, help="number of frames in a clip (default: %(default)s)")
    parser.add_argument("--batch-size", type=int, help="recordings in a batch (default: 8 with a GPU, else 2)")
    parser.add_argument("--workers", type=int, default=default_workers(1))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--precision", default="auto")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    arguments.architecture = arguments.architecture or f"vit_{'base' if device.type == 'cuda' else 'small'}_patch16_224"
    arguments.batch_size = arguments.batch_size or (8 if device.type == "cuda" else 2)
    where = (
        torch.cuda.get_device_name() if device.type == "cuda" else f"CPU, {torch.get_num_threads()} threads of torch"
    )
    limit = 0.8 if device.type == "cuda" else 0.9
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
        parts = model.encoder.transform(read_clip(path, model.sampling))
        enough = enough_clips(model, parts, device, arguments.batch_size)
        count = arguments.clips or enough
        clips = Copies(partial(read_clip, path, model.sampling), count)
        ways = {
            "real": (real, model, clips, device, arguments.batch_size, arguments.workers),
            "synthetic": (synthetic, model, parts, device, arguments.batch_size, count),
            "simple": (simple, network, transform, path, count, device),
        }
        taken, made = {name: [] for name in ways}, {}
        for _ in range(arguments.repeats):
            for name, way in ways.items():
                seconds, made[name] = timed(device, *way)
                taken[name].append(seconds)
        tolerance = 1e-3 if model.precision == "fp32" else 0.2
        np.testing.assert_allclose(made["real"][: len(made["simple"])], made["simple"], atol=tolerance, rtol=0)
    done = {name: min(count, SIMPLE_CLIPS) if name == "simple" else count for name in ways}
    speed = {name: done[name] / statistics.median(seconds) for name, seconds in taken.items()}
    print(f"Python {platform.python_version()}, torch {torch.__version__}; {where}; {os.cpu_count()} cores", end="; ")
    print(
        f"{arguments.architecture}, {model.precision}; {arguments.workers} workers, batches of {arguments.batch_size}"
    )
    print(
        f"{count} clips of {arguments.length} frames {arguments.height} x {arguments.width}, {FRAMES} of them encoded"
    )
    for name, value in speed.items():
        print(f"{name:10}{value:8.2f} clips/s{'' if device.type == 'cuda' else ' of one core'}")
    held = speed["real"] / speed["synthetic"]
    print(f"real / synthetic {held:.2f}  >= {limit:g} {'reached' if held >= limit else 'not reached'}")
    print(f"real / simple    {speed['real'] / speed['simple']:.2f}")


if __name__ == "__main__":
    main()
