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
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import timm
import torch
from decode import speckle, write
from encode import SECONDS, Copies, enough_clips, real, synthetic, timed
from timm.models import save_for_hf

from cardiobench.cli.main import main as command_line
from cardiobench.data.media import Ecg, read_clip, read_ecg
from cardiobench.embeddings.extract import default_workers
from cardiobench.models.base import LoadedModel
from cardiobench.models.custom import BaseEncoder
from cardiobench.models.families.st_mem.adapter import prepare
from cardiobench.models.families.st_mem.network import StMem
from cardiobench.models.load import load_model
from cardiobench.protocols.training.objective import one_thread

TESTS = ("tests/gpu", "tests/extensions/finetune/test_finetune.py", "tests/extensions/scratch/test_scratch.py")
"""Files with tests marked `gpu`."""
ARCHITECTURE = {"cuda": "vit_base_patch16_224", "cpu": "vit_tiny_patch16_224"}
SIZES = ((112, 112), (600, 800))
PREPARED = 8  # Recordings whose preparation is timed alone.
ECG_MODEL = "cardiobench/random-xresnet1d101"
TRAININGS = {
    "scratch, bundled ECGs": (
        ("--tasks", "ptb_xl_sample/cd", "--protocols", "scratch"),
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


def evaluate(*arguments: str, device: torch.device) -> tuple[float, dict[str, dict[str, Any]]]:
    """Run `cardiobench eval` into empty folders; return its seconds, and score and verdict of each result.

    Raises:
        RuntimeError: The command fails.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        started = time.perf_counter()
        places = ["--output-dir", f"{folder}/results", "--cache-dir", f"{folder}/cache", "--device", device.type]
        code = command_line(["eval", *arguments, *places])
        seconds = time.perf_counter() - started
        if code:
            raise RuntimeError(f"cardiobench eval {' '.join(arguments)} has the exit code {code}; its message is above")
        files = sorted(
            Path(folder).glob(f"results/*/*/*/{arguments[arguments.index('--tasks') + 1].replace('/', '__')}*.json")
        )
        results = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return seconds, {
        f"{one['model']['name']}, {one['protocol']} {one['variant']}".rstrip(): {
            "score": one["overall"][one["metric"]]["value"],
            "verdict": one["verdict"]["word"],
        }
        for one in results
    }


def demo(device: torch.device) -> Iterator[dict[str, Any]]:
    """Evaluate the first models of the demo: on the CPU and in each precision, whose verdicts must be those of the CPU."""
    wanted = (
        "--model",
        "cardiobench/ecg-morphology",
        ECG_MODEL,
        "--tasks",
        "ptb_xl_sample/cd",
        "--protocols",
        "probe",
        "knn",
    )
    found = {}
    for name, (where, precision) in {
        "fp32": (device, "fp32"),
        "bf16": (device, "bf16"),
        "cpu": (torch.device("cpu"), "fp32"),
    }.items():
        seconds, found[name] = evaluate(*wanted, "--precision", precision, device=where)
        yield {"run": name, "seconds": seconds, "results": found[name]}
    words = {name: {key: one["verdict"] for key, one in results.items()} for name, results in found.items()}
    if not words["fp32"] == words["bf16"] == words["cpu"]:
        raise RuntimeError(f"the verdicts differ: {words}")


def tests(device: torch.device) -> Iterator[dict[str, Any]]:
    """Run the tests marked `gpu`, and give the largest distance between devices of each precision."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tests.xml"
        processes = ["-n", "5"] if find_spec("xdist") else []
        options = ["-q", "-m", "gpu", *processes, "--junit-xml", str(report), *TESTS]
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


class EcgTransformer(BaseEncoder):
    """ST-MEM, a ViT-B over patches of twelve leads, with random weights and its own preprocessing."""

    name, sampling, sampling_rate = "benchmark/st-mem", None, None

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.network = StMem().eval()

    def transform(self, recording: Ecg) -> torch.Tensor:
        """Cut crops as the authors do."""
        return torch.from_numpy(prepare(recording.signal, recording.fs)).float()

    def encode(self, parts: torch.Tensor) -> torch.Tensor:
        """Encode crops as the normalised mean of their patches."""
        return self.network.representation(parts)[:, 0]


def recordings(device: torch.device, folder: Path) -> Iterator[tuple[str, LoadedModel, Callable[[], Any]]]:
    """Yield kinds of recordings, each with its name, a network and the function that reads one from a file."""
    network = timm.create_model(ARCHITECTURE[device.type], num_classes=0).eval()
    save_for_hf(network, folder / "model", safe_serialization=True)
    for height, width in SIZES:
        model = load_model(str(folder / "model"), device=device, precision="auto")
        path = write(folder / f"{width}.avi", speckle(100, height, width), "mjpeg", "yuvj420p")
        yield f"clip, {height} x {width}, {ARCHITECTURE[device.type]}", model, partial(read_clip, path, model.sampling)
    record = next(Path("hf_datasets/ptb_xl_sample/data/records100").rglob("*.hea"))
    for precision in ("fp32", "bf16") if device.type == "cuda" else ("fp32",):
        ecg_model = LoadedModel(EcgTransformer(), "benchmark", {}, precision=precision)
        yield "ECG, 12 leads of 10 s at 100 Hz, ST-MEM", ecg_model, partial(read_ecg, record.with_suffix(""))


def prepare_some(model: LoadedModel, read: Callable[[], Any]) -> None:
    """Read and transform a recording `PREPARED` times with one thread, as a worker does."""
    with one_thread():
        for _ in range(PREPARED):
            model.encoder.transform(read())


def throughput(device: torch.device) -> Iterator[dict[str, Any]]:
    """Measure recordings per second of the encoding loop with decoding, and of the encoder alone on parts in memory."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, model, read in recordings(device, Path(folder)):
            parts, batch = model.encoder.transform(read()), 8 if device.type == "cuda" else 2
            model.encoder.to(device)
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(device)
            workers = default_workers(1)
            decoding, _ = timed(torch.device("cpu"), prepare_some, model, read)
            most = max(batch, round(SECONDS * workers * PREPARED / decoding))
            count = min(enough_clips(model, parts, device, batch), most)
            alone, _ = timed(device, synthetic, model, parts, device, batch, count)
            whole, _ = timed(device, real, model, Copies(read, count), device, batch, workers)
            yield {
                "recording": kind,
                "precision": model.precision,
                "count": count,
                "recordings_per_second": count / whole,
                "encoder_alone": count / alone,
                "share_of_the_encoder": alone / whole,
                "workers": workers,
                "cpu_seconds_to_prepare_one": decoding / PREPARED,
                "peak_gpu_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
            }


def training(device: torch.device) -> Iterator[dict[str, Any]]:
    """Train a network from scratch and by adapters, and search neighbours in 345,779 vectors."""
    limit = () if device.type == "cuda" else ("--limit", "40")
    for name, (arguments, options) in TRAININGS.items():
        line = (*arguments, *limit, "--option", *options[device.type])
        seconds, results = evaluate(*line, device=device)
        yield {"training": name, "seconds": seconds, "results": results}
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
