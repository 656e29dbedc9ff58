"""Test the encoding loop: smaller batches when out of memory, and failures that name the recording."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from cardiobench.core.errors import BadConfig, BadMedia
from cardiobench.data.media import Ecg
from cardiobench.data.open import open_dataset
from cardiobench.embeddings import decode as decoding
from cardiobench.embeddings.decode import decode
from cardiobench.embeddings.extract import EncodeJob, PartEncoder, _Recordings, default_workers, extract, one_ahead
from cardiobench.embeddings.key import embedding_key
from cardiobench.embeddings.store import EmbeddingStore
from cardiobench.models.base import LoadedModel
from cardiobench.models.custom import BaseEncoder
from cardiobench.models.signal import at_rate

CPU = torch.device("cpu")


class Doubler:
    """Encoder that doubles its input, on a device with memory for `room` parts."""

    name, modalities, sampling, preprocessing, warnings = "doubler", ("ecg",), None, {}, ()

    def __init__(self, room=100):
        self.room, self.batches = room, []

    def transform(self, recording):
        return torch.full((2, 3), float(recording))

    def encode(self, parts):
        if len(parts) > self.room:
            raise torch.OutOfMemoryError("no room")
        self.batches.append(len(parts))
        return parts * 2


def loaded(encoder, precision="fp32"):
    return LoadedModel(encoder, "by the test", {}, precision=precision)


def test_out_of_memory_halves_the_batch_for_good():
    encoder = Doubler(room=3)
    encode = PartEncoder(loaded(encoder), CPU)
    parts = torch.arange(16.0)[:, None]
    torch.testing.assert_close(encode(parts), parts * 2)
    assert max(encoder.batches) == 2, "batches of 16, 8 and 4 did not fit"
    encoder.batches.clear()
    encode(parts)
    assert encoder.batches == [2] * 8, "the batch size is remembered"


def test_oversized_single_part_is_an_error():
    with pytest.raises(torch.OutOfMemoryError):
        PartEncoder(loaded(Doubler(room=0)), CPU)(torch.ones(4, 1))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_network_runs_without_gradients_in_precision(precision):
    seen = []

    class Watched(Doubler):
        def encode(self, parts):
            seen.append((torch.is_inference_mode_enabled(), (parts.float() @ torch.ones(3, 1)).dtype, parts.dtype))
            return super().encode(parts.float())

    vectors = PartEncoder(loaded(Watched(), precision), CPU)(torch.ones(2, 3, dtype=torch.uint8))
    assert vectors.dtype == torch.float32
    assert seen == [(True, torch.bfloat16 if precision == "bf16" else torch.float32, torch.uint8)]


def test_batches_are_formed_across_recordings(tmp_path):
    encoder = Doubler()
    store = EmbeddingStore(tmp_path, "doubler", "toy", {})
    extract(loaded(encoder), pieces((0, 1, 4), store), device=CPU, batch_size=3, workers=0)
    assert encoder.batches == [1, 6], "one part to count operations, then three recordings of two parts"


class Recordings:
    """Recording n has the value n; 2 is unreadable, and 3 gives an infinite vector."""

    frame = pd.DataFrame({"id": [f"r{n}" for n in range(5)], "fingerprint": ["s"] * 5})
    spec = SimpleNamespace(name="toy")

    def recording(self, number, sampling):
        if number == 2:
            raise BadMedia("r2.avi is cut short")
        return float("inf") if number == 3 else number


def pieces(numbers, store):
    return [EncodeJob(Recordings(), number, store) for number in numbers]


def test_tokens_are_stored_in_part_order(tmp_path):
    class Tokens(Doubler):
        def encode(self, parts):
            return parts[:, None] * torch.tensor([1.0, 10.0, 100.0])[:, None]

    store = EmbeddingStore(tmp_path, "tokens", "toy", {})
    jobs = pieces((1, 4), store)
    extract(loaded(Tokens()), jobs, device=CPU, batch_size=2, workers=0)
    stored = store.load([job.id for job in jobs], [job.fingerprint for job in jobs])
    assert stored.parts(1).tolist() == [[4.0] * 3, [40.0] * 3, [400.0] * 3] * 2
    assert stored.pooled("mean")[0] == pytest.approx([37.0] * 3), "other protocols use the mean of all"


def test_failed_recordings_are_named_and_the_rest_is_kept(tmp_path):
    store = EmbeddingStore(tmp_path, "doubler", "toy", {})
    done = []
    failures = extract(
        loaded(Doubler()), pieces(range(5), store), device=CPU, batch_size=2, workers=0, advance=done.append
    )
    assert {f.id: f.reason for f in failures} == {
        "r2": "r2.avi is cut short",
        "r3": "doubler gave a vector that is not finite",
    }
    assert sum(done) == 5
    got = store.load(["r4", "r0", "r1"], ["s"] * 3)
    assert [got.parts(n).tolist() for n in range(3)] == [[[8.0] * 3] * 2, [[0.0] * 3] * 2, [[2.0] * 3] * 2]


class Traps(Recordings):
    """Recording 0 kills its worker, 1 stops it, 2 sleeps, and 3 and 4 are normal."""

    def recording(self, number, sampling):
        if number == 2:
            time.sleep(60)
        if number < 2:
            os.kill(os.getpid(), (signal.SIGKILL, signal.SIGSTOP)[number])
        return number


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_failed_worker_costs_one_recording(tmp_path, workers):
    others = set(multiprocessing.active_children())  # Processes that other tests left behind.
    store, started = EmbeddingStore(tmp_path, "doubler", "toy", {}), time.monotonic()
    jobs = [EncodeJob(Traps(), number, store) for number in range(5)]
    failures = extract(loaded(Doubler()), jobs, device=CPU, batch_size=2, workers=workers, recording_timeout=1.5)
    late = "decoding took longer than 1.5 s (--recording-timeout)"
    assert {f.id: f.reason for f in failures} == {
        "r0": "the process that decoded it was ended by SIGKILL (out of memory?)",
        "r1": late,
        "r2": late,
    }
    assert store.missing([f"r{n}" for n in range(5)], ["s"] * 5).tolist() == [0, 1, 2]
    assert time.monotonic() - started < 30 and set(multiprocessing.active_children()) <= others


def test_recording_is_tried_again_if_a_new_worker_hangs(tmp_path):
    """Simulate a process forked while another thread holds a lock that the process needs."""

    class Locked:
        def __len__(self):
            return 3

        def __getitem__(self, position):
            try:
                (tmp_path / "first process").touch(exist_ok=False)
            except FileExistsError:
                return torch.full((1,), position)
            time.sleep(60)

    assert [int(parts) for parts in decode(Locked(), workers=1, timeout=0.7)] == [0, 1, 2]


@pytest.mark.parametrize("stopped", [0, 1000])
def test_time_in_suspension_does_not_count_as_a_timeout(monkeypatch, stopped):
    """Simulate a job that a scheduler suspends: of a thousand seconds of waiting, one counts."""
    clock = SimpleNamespace(now=0.0)

    def wait(sources, timeout):
        clock.now += stopped + timeout

    monkeypatch.setattr(decoding, "wait", wait)
    monkeypatch.setattr(decoding, "time", SimpleNamespace(monotonic=lambda: clock.now))
    waited_for = SimpleNamespace(
        position=0, left=2.5, sources=[], kill=lambda: None, result=lambda: "late" if waited_for.left <= 0 else None
    )
    waits = 0
    while not list(decoding._collect([waited_for])):
        waits += 1
    assert waits == 2, "the waits were 1, 1 and 0.5 seconds"


def test_workers_yield_results_in_order():
    class Slow(list):
        def __getitem__(self, position):
            time.sleep(0.05 * (position % 3 == 0))
            return torch.full((1,), position)

    positions = [int(parts) for parts in decode(Slow(range(20)), workers=3, timeout=10)]
    assert positions == list(range(20))


@pytest.mark.parametrize(
    ("cores", "processes", "workers"), [(1, 1, 1), (2, 1, 2), (4, 1, 3), (64, 1, 16), (64, 8, 7), (4, 8, 1)]
)
def test_default_workers_equal_allotted_cores(monkeypatch, cores, processes, workers):
    """Test a scheduler that grants 4 of 64 cores: 64 processes would exceed the memory of the job."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", str(cores))
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(cores), raising=False)
    assert default_workers(processes) == workers


def test_defect_in_a_worker_is_raised_and_no_worker_is_left():
    class Broken(list):
        def __getitem__(self, position):
            return 1 / 0

    others = set(multiprocessing.active_children())  # Processes that other tests left behind.
    with pytest.raises(ZeroDivisionError):
        list(decode(Broken(range(4)), workers=2, timeout=10))
    assert set(multiprocessing.active_children()) <= others


def test_resampling_hides_hospital_sampling_rates_from_encoders():
    """Test PTB-XL at 100 Hz with Georgia at 500 Hz, where the number of samples would reveal the dataset."""

    class Samples(BaseEncoder):
        name = "lab/samples"

        def transform(self, recording: Ecg):
            return torch.tensor([[float(len(recording.signal)), recording.fs]])

        def encode(self, parts):
            return parts

    class AsRecorded(Samples):
        sampling_rate = None

    beat = np.sin(np.linspace(0, 60, 10_000))[:, None] * np.ones(12)
    sources = [
        SimpleNamespace(recording=lambda number, sampling, step=step: Ecg(beat[::step], 1000 / step))
        for step in (2, 10)
    ]
    jobs = [SimpleNamespace(source=source, number=0, media="") for source in sources]

    def vectors(encoder):
        return [tuple(parts[0].tolist()) for parts in _Recordings(loaded(encoder), jobs)]

    assert vectors(AsRecorded()) == [(5000, 500), (1000, 100)]
    assert vectors(Samples()) == [(5000, 500), (5000, 500)]
    signals = [at_rate(source.recording(0, None), 500.0).signal for source in sources]
    assert np.abs(signals[0] - signals[1])[100:-100].max() < 0.02, "the same curve"
    keys = [embedding_key(loaded(encoder), open_dataset("ptb_xl_sample")) for encoder in (Samples(), AsRecorded())]
    assert keys[0]["sampling_rate"] == 500 and keys[1]["sampling_rate"] is None


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_recordings_are_decoded_in_process_if_forking_is_unsafe(system, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    assert default_workers(1) == 0
    monkeypatch.setattr(decoding, "get_all_start_methods", lambda: ["spawn"])
    assert list(decode(["a", "b"], workers=0, timeout=1)) == ["a", "b"]
    with pytest.raises(BadConfig, match=f"--workers 2: .* {system} cannot do"):
        next(decode(["a", "b"], workers=2, timeout=1))


def test_next_item_is_computed_while_the_last_is_used():
    begun, closed = [threading.Event() for _ in range(4)], threading.Event()

    def items():
        try:
            for number, event in enumerate(begun):
                event.set()
                yield number
        finally:
            closed.set()

    ahead = one_ahead(items())
    assert next(ahead) == 0 and begun[1].wait(5) and not begun[2].is_set()
    assert list(ahead) == [1, 2, 3] and closed.is_set()


def test_error_of_an_item_ahead_reaches_the_caller_in_its_turn():
    def items():
        yield 1
        raise BadMedia("the second cannot be read")

    ahead = one_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(BadMedia, match="the second"):
        next(ahead)


def test_closed_iterator_releases_its_source():
    def items():
        for number in range(9):
            time.sleep(0.05)
            yield number

    source = items()
    ahead = one_ahead(source)
    next(ahead)
    ahead.close()
    source.close()  # Raises ValueError while a thread runs it.
