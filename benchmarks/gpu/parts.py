"""Parts of `benchmarks/gpu/run.sh`, each of which prints lines of JSON: `python -m benchmarks.gpu.parts PART --device cuda`."""

import argparse
import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import timm
import torch
from decode import speckle, write
from encode import Clips, enough_clips, real, synthetic, timed
from timm.models import save_for_hf

from cardiobench.cli.main import main as command_line
from cardiobench.data.media import read_clip
from cardiobench.embeddings.extract import default_workers
from cardiobench.models.load import load_model

ARCHITECTURE = {"cuda": "vit_base_patch16_224", "cpu": "vit_tiny_patch16_224"}
SIZES = ((112, 112), (600, 800))
ECG_MODEL = "cardiobench/random-xresnet1d101"
TRAININGS = {
    "scratch, bundled ECGs": (
        ("--model", ECG_MODEL, "--tasks", "ptb_xl_sample/cd", "--protocols", "scratch"),
        {"cuda": ("scratch.network=s4",), "cpu": ("scratch.network=small", "scratch.epochs=1")},
    ),
    "fine-tuning, phantom clips": (
        ("--model", "cardiobench/random-vit", "--tasks", "phantom_echo/ef", "--protocols", "finetune"),
        {
            "cuda": ('finetune.modes=["lora"]',),
            "cpu": ('finetune.modes=["last"]', "finetune.epochs=1", "finetune.seeds=1"),
        },
    ),
}
"""Arguments of each training, and its options by device."""


def facts(device: torch.device) -> dict[str, Any]:
    """Return the facts that stand in each line: the device with its driver, PyTorch and the date."""
    found: dict[str, Any] = {"device": device.type, "torch": torch.__version__, "date": f"{datetime.now(UTC):%Y-%m-%d}"}
    if device.type == "cuda":
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        card, driver = (
            subprocess.run(query, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
        )
        found |= {"card": card, "driver": driver, "cores": os.cpu_count()}
    return found


def evaluate(*arguments: str, device: torch.device) -> float:
    """Run `cardiobench eval` into empty folders and return its seconds; raises `RuntimeError` if it fails."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        started = time.perf_counter()
        places = ["--output-dir", f"{folder}/results", "--cache-dir", f"{folder}/cache", "--device", device.type]
        code = command_line(["eval", *arguments, *places])
    if code:
        raise RuntimeError(f"cardiobench eval {' '.join(arguments)} has the exit code {code}; its message is above")
    return time.perf_counter() - started


def demo(device: torch.device) -> Iterator[dict[str, Any]]:
    """Evaluate the first models of the demo."""
    models = ("cardiobench/ecg-morphology", ECG_MODEL)
    seconds = evaluate("--model", *models, "--tasks", "ptb_xl_sample/cd", "--protocols", "probe", "knn", device=device)
    yield {"seconds": seconds}


def tests(device: torch.device) -> Iterator[dict[str, Any]]:
    """Run the tests marked `gpu`, and give the largest distance between devices of each precision."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.xml"
        options = ["-q", "-m", "gpu", "-p", "no:xdist", "--junit-xml", str(report), "tests/gpu"]
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-m", "pytest", *options], capture_output=True, text=True, check=False)
        found = {"seconds": time.perf_counter() - started, "summary": done.stdout.strip().splitlines()[-1:]}
        if done.returncode:
            raise RuntimeError(done.stdout[-4000:])
        yield found | _largest_distances(report)


def _largest_distances(report: Path) -> dict[str, float]:
    from xml.etree import ElementTree  # Written by the tests of this process.

    values: dict[str, list[float]] = {}
    for one in ElementTree.parse(report).iter("property"):
        values.setdefault(f"largest distance, {one.attrib['name']}", []).append(float(one.attrib["value"]))
    return {name: max(found) for name, found in values.items()}


def throughput(device: torch.device) -> Iterator[dict[str, Any]]:
    """Measure recordings per second of the encoding loop with decoding, and of the encoder alone on frames in memory."""
    for height, width in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            network = timm.create_model(ARCHITECTURE[device.type], num_classes=0).eval()
            save_for_hf(network, Path(folder) / "model", safe_serialization=True)
            model = load_model(str(Path(folder) / "model"), device=device, precision="auto")
            path = write(Path(folder) / "clip.avi", speckle(100, height, width), "mjpeg", "yuvj420p")
            parts, batch = model.encoder.transform(read_clip(path, model.sampling)), 8 if device.type == "cuda" else 2
            model.encoder.network.to(device)
            count = enough_clips(model, parts, device, batch)
            workers = default_workers(1)
            alone, _ = timed(device, synthetic, model, parts, device, batch, count)
            whole, _ = timed(device, real, model, Clips(path, count), device, batch, workers)
            decoding, _ = timed(torch.device("cpu"), read_clip, path, model.sampling)
            yield {
                "frames": f"{height} x {width}",
                "network": ARCHITECTURE[device.type],
                "precision": model.precision,
                "recordings_per_second": count / whole,
                "encoder_alone": count / alone,
                "share_of_the_encoder": alone / whole,
                "workers": workers,
                "cpu_seconds_to_decode_one": decoding,
                "peak_gpu_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
            }


def training(device: torch.device) -> Iterator[dict[str, Any]]:
    """Train a network from scratch and by adapters, and search neighbours in 345,779 vectors."""
    limit = () if device.type == "cuda" else ("--limit", "8")
    for name, (arguments, options) in TRAININGS.items():
        line = (*arguments, *limit, "--option", *options[device.type])
        yield {"training": name, "seconds": evaluate(*line, device=device)}
    count = 345_779 if device.type == "cuda" else 5_000
    started = time.perf_counter()
    line = [sys.executable, "benchmarks/full_size.py", "--recordings", str(count), "--stages", "knn"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stdout[-2000:] + done.stderr[-2000:])
    yield {"training": f"knn, {count} x 384, with its tables", "seconds": time.perf_counter() - started}


PARTS: dict[str, Callable[[torch.device], Iterator[dict[str, Any]]]] = {
    "demo": demo,
    "tests": tests,
    "throughput": throughput,
    "training": training,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    asked = parser.parse_args()
    device = torch.device(asked.device)
    for found in PARTS[asked.part](device):
        print(json.dumps({"part": asked.part, **facts(device), **found}), flush=True)


if __name__ == "__main__":
    main()
