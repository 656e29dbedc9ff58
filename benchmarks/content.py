"""Measure the share of the digest of a recording in the CPU time of reading and encoding it.

    OMP_NUM_THREADS=1 python benchmarks/content.py [--limit 0.03] [--echo FILE ...] [--ecg RECORD ...]

By default, the recordings are the bundled ECGs, encoded with a random xresnet1d101, and a motion-JPEG clip of 112 x 112 pixels
with 100 frames, of which a random ViT-S encodes 16. The exit code is 1 if a share is above the limit.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from cardiobench.data import catalog
from cardiobench.data.media import Clip, Ecg, FrameSampling, read_ecg
from cardiobench.data.media.clip import read_clip
from cardiobench.data.media.content import Content, digested
from cardiobench.data.media.write import avi
from cardiobench.embeddings.extract import PartEncoder, to_parts
from cardiobench.models.load import load_model

PASSES = 5
ECHO, ECG = "cardiobench/random-vit", "cardiobench/random-xresnet1d101"


class Timed(Content):
    """Content that adds up the CPU seconds of its digest."""

    seconds = 0.0

    def add(self, data: bytes | memoryview) -> None:
        """Add bytes."""
        start = time.process_time()
        super().add(data)
        Timed.seconds += time.process_time() - start


def share(name: str, files: list[Path], read: Callable[[Path], Clip | Ecg]) -> float:
    """Print and return the share of the digest, the smallest of several passes."""
    model, shares = load_model(name), []
    encode = PartEncoder(model, torch.device("cpu"))
    for _ in range(PASSES):
        Timed.seconds, start = 0.0, time.process_time()
        for file in files:
            with digested():
                recording = read(file)
            encode(to_parts(model, recording))
        shares.append(Timed.seconds / (time.process_time() - start))
    print(f"{name}: {len(files)} recordings, digest {min(shares):.2%} of reading and encoding")
    return min(shares)


def main() -> int:
    """Measure both modalities; return 1 if a share is above the limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limit", type=float, default=0.03)
    parser.add_argument("--echo", type=Path, nargs="+", default=[])
    parser.add_argument("--ecg", type=Path, nargs="+", default=[])
    asked = parser.parse_args()
    import cardiobench.data.media.content as module

    module.Content = Timed
    sampling = FrameSampling(16)
    with tempfile.TemporaryDirectory() as folder:
        clip = Path(folder) / "clip.avi"
        noise = np.random.default_rng(0).integers(0, 256, (100, 112, 112, 3), dtype=np.uint8)
        clip.write_bytes(avi(noise, 30))
        records = sorted((catalog.dataset_folder("ptb_xl_sample") / "data" / "records100").rglob("*.hea"))
        shares = [
            share(ECG, asked.ecg or records[:40], read_ecg),
            share(ECHO, asked.echo or [clip] * 10, lambda file: read_clip(file, sampling)),
        ]
    return int(max(shares) > asked.limit)


if __name__ == "__main__":
    sys.exit(main())
