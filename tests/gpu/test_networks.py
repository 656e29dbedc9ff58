"""Compare a GPU with the CPU: vectors of every network in float32 and bfloat16, memory, neighbours, two processes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cardiobench.core.errors import MissingExtra
from cardiobench.data.media import Ecg
from cardiobench.embeddings.extract import PartEncoder, to_parts
from cardiobench.models.base import LoadedModel
from cardiobench.models.device import to_device
from cardiobench.models.load import load_model
from cardiobench.protocols import nearest as blocks
from tests.embeddings.test_copies import videos
from tests.models.checkpoints import CHECKPOINTS, change_card, smaller_networks
from tests.ports import free_port
from tests.protocols.test_knn import rows
from tests.runner.test_processes import embeddings

pytestmark = [pytest.mark.gpu, pytest.mark.slow]
CPU = torch.device("cpu")
# Largest distance of a vector, in lengths of the vector. TF32 keeps 10 bits of a mantissa and bfloat16 keeps 7.
FLOAT32, BFLOAT16 = 5e-3, 5e-2


def ecgs() -> list[Ecg]:
    """Return three noisy ECGs of 10 s at 500 Hz."""
    return [Ecg(np.random.default_rng(seed).normal(size=(5000, 12)).astype(np.float32), 500) for seed in range(3)]


def distance(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((torch.linalg.norm(found - expected, dim=-1) / torch.linalg.norm(expected, dim=-1)).max())


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_vectors_are_those_of_the_cpu(name, tmp_path, monkeypatch, device, record_property):
    change_card(monkeypatch, name)
    (tmp_path / "files").mkdir()
    with smaller_networks():
        try:
            model = load_model(name, weights=CHECKPOINTS[name](tmp_path / "files"), precision="fp32")
            recordings = ecgs() if "ecg" in model.encoder.modalities else videos()
            parts = torch.cat([to_parts(model, one) for one in recordings])
        except MissingExtra as error:  # A node without a package index has no resampy and no package with weights.
            pytest.skip(str(error))
        expected = PartEncoder(model, CPU)(parts)
        to_device(model.encoder.network, device)
        found = PartEncoder(model, device)(parts)
        encode = PartEncoder(model, device)
        encode.bf16 = True
        lower = encode(parts)
    record_property("float32", distance(found, expected))
    record_property("bfloat16", distance(lower, expected))
    assert found.device == lower.device == CPU
    assert distance(found, expected) < FLOAT32 and distance(lower, expected) < BFLOAT16


def test_batch_without_room_is_halved(device):
    if device.type != "cuda":
        pytest.skip("a CPU has no memory of its own to run out of")
    device = torch.device("cuda", torch.cuda.current_device())
    layer = torch.nn.Linear(1024, 1024).to(device)

    class Wide:
        name, sampling, preprocessing, warnings, network = "wide", None, {}, (), layer

        def encode(self, parts):
            return layer(parts.repeat(1, 4096).view(len(parts), 4096, 1024)).mean(1)

    parts = torch.ones(256, 1024)
    _, total = torch.cuda.mem_get_info(device)
    torch.cuda.set_per_process_memory_fraction(min(1.0, 2**31 / total), device)  # 2 GiB for 8 GiB of values.
    try:
        encode = PartEncoder(LoadedModel(Wide(), "", {}), device)
        vectors = encode(parts)
        assert encode.limit is not None and encode.limit < 256
        torch.testing.assert_close(vectors, layer(parts.to(device)).cpu(), rtol=1e-3, atol=1e-4)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)


def test_neighbours_are_those_of_the_cpu(device):
    features = np.random.default_rng(0).normal(size=(9000, 384)).astype(np.float32)
    train, query = rows(features, np.arange(8000)), rows(features, np.arange(8000, 9000))
    block = query.take(slice(None), np.float32) * np.float32(1 / blocks.GRID)
    candidates = blocks._on_gpu(train, block, 29, device), blocks._on_cpu(train, block, 29)
    found, expected = (blocks._settled(train.take, query, slice(0, 1000), one)[:, :21] for one in candidates)
    np.testing.assert_array_equal(found, expected)


def test_two_processes_on_one_device_equal_one(device, tmp_path):
    """Two processes share the device over gloo; each encodes half of the recordings."""
    accelerate = Path(sys.executable).parent / "accelerate"
    launch = [accelerate, "launch", "--cpu", "--num_processes", 2, "--main_process_port", free_port()]
    wanted = [
        "--model",
        "cardiobench/random-vit",
        "--tasks",
        "phantom_echo/view",
        "--protocols",
        "probe",
        "--limit",
        12,
    ]
    for name, start in (("one", [sys.executable]), ("two", launch)):
        folder = tmp_path / name
        places = ["--output-dir", folder / "results", "--cache-dir", folder / "cache", "--device", device.type]
        command = [str(part) for part in (*start, "-m", "cardiobench.eval", *wanted, *places)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    one, two = (embeddings(tmp_path / name) for name in ("one", "two"))
    assert one and one.keys() == two.keys()
    alone, shared = (torch.from_numpy(np.stack([found[key] for key in sorted(one)])) for found in (one, two))
    assert distance(shared, alone) < FLOAT32
