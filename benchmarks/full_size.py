"""Measure a run on CODE-15% at its full size, 345,779 records, without its 68 GB of signals: CPU seconds and peak memory by stage.

The script writes the release's table, HDF5 parts whose tracings are never allocated, and random embeddings with a falling
spectrum, some of them correlated with the label. Every stage then runs in a separate process. Run it alone:

    OMP_NUM_THREADS=1 python benchmarks/full_size.py
    OMP_NUM_THREADS=1 python benchmarks/full_size.py --dim 1536 --stages probe
    OMP_NUM_THREADS=1 python benchmarks/full_size.py --recordings 345779 1000000 --stages open load     # growth of time
    OMP_NUM_THREADS=1 python benchmarks/full_size.py --stages frames        # EchoNet-Dynamic: 10,030 x 16 frames x 768
    OMP_NUM_THREADS=1 python benchmarks/full_size.py --stages echo          # the whole echo suite, 50,796 recordings x 512

The scores are meaningless.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pandas as pd

FULL, PARTS, PATIENTS = 345_779, 18, 233_770
DIAGNOSES = {"1dAVb": 0.016, "RBBB": 0.028, "LBBB": 0.017, "SB": 0.016, "ST": 0.022, "AF": 0.020}
MODEL, TASK = "cardiobench/constant", "code15/af"
STAGES = ("open", "load", "probe", "knn", "few_shot", "score", "default run", "frames", "echo")
CLIPS, FRAMES, FRAME_DIM = 10_030, 16, 768
LIMITS = {  # Mapping from stage to CPU seconds and MB at 345,779 x 384 and at 345,779 x 1,536.
    384: {
        "default run": (200, 1600),
        "probe": (15, 900),
        "few_shot": (40, 1200),
        "score": (1, None),
        "open": (3, 500),
        "frames": (5, 1000),
        "echo": (60, None),
    },
    1536: {"probe": (150, 6000), "knn": (900, 6000)},
}


def make_release(folder: Path, count: int) -> None:
    """Write `exams.csv` and the HDF5 parts of a release of this size, unless they exist."""
    raw = folder / "raw" / "code15"
    if (raw / "exams.csv").exists():
        return
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    ids, part = np.arange(1, count + 1) + 1000, np.arange(count) % PARTS
    table = pd.DataFrame({"exam_id": ids, "age": rng.integers(18, 90, count), "is_male": rng.random(count) < 0.4})
    for name, share in DIAGNOSES.items():
        table[name] = rng.random(count) < share
    table["patient_id"] = rng.integers(1, max(2, PATIENTS * count // FULL), count)
    table["normal_ecg"], table["trace_file"] = rng.random(count) < 0.38, [f"exams_part{n}.hdf5" for n in part]
    for number in range(PARTS):
        mine = ids[part == number]
        with h5py.File(raw / f"exams_part{number}.hdf5", "w") as file:
            file["exam_id"] = np.r_[mine, 0]
            file.create_dataset("tracings", (len(mine) + 1, 4096, 12), np.float32, chunks=(1, 4096, 12))
    table.to_csv(raw / "exams.csv", index=False)


def settings(folder: Path, protocols: tuple[str, ...], output: Path):
    """Return the settings of a run on that release."""
    from cardiobench.core.config import RunConfig

    return RunConfig(
        models=(MODEL,),
        tasks=(TASK,),
        protocols=protocols,
        data_dir=folder / "raw" / "code15",
        output_dir=output,
        cache_dir=folder / "cache",
        allow_missing=True,
    )


def opened(config):
    """Return the model, its plan for the release and the task."""
    from cardiobench.models.load import load_model
    from cardiobench.runner.plan import open_datasets, plan_dataset, resolve_tasks

    tasks = resolve_tasks(config.tasks)
    sources, _ = open_datasets(tasks, config)
    return plan_dataset(load_model(MODEL), sources["code15"], list(tasks), config), tasks[0]


def fill_store(folder: Path, dim: int, shard: int = 4096) -> None:
    """Store embeddings of all records without any."""
    with tempfile.TemporaryDirectory() as output:
        plan, _ = opened(settings(folder, ("probe",), Path(output)))
    if not len(plan.to_encode):
        return
    frame, rng = plan.dataset.frame, np.random.default_rng(1)
    label = (frame["af"] == "AF").to_numpy(np.float32)
    axes, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    axes = (axes / np.arange(1, dim + 1)[:, None]).astype(np.float32)
    for start in range(0, len(frame), shard):
        rows = frame.iloc[start : start + shard]
        hidden = rng.standard_normal((len(rows), dim), dtype=np.float32)
        hidden[:, :8] += 0.5 * label[start : start + shard, None]
        vectors = hidden @ axes
        contents = [f"{number:032x}" for number in range(start + 1, start + len(rows) + 1)]
        plan.store.append(
            list(rows["id"]),
            list(rows["fingerprint"]),
            list(vectors[:, None]),
            hints=list(rows["hint"]),
            contents=contents,
            device="cpu",
        )


def run_stage(name: str, folder: Path) -> None:
    """Run one stage in this process; print its CPU seconds and the peak memory as JSON."""
    import cardiobench.runner.run  # noqa: F401  # so that the share of imports in the peak is known

    imports = peak_memory()
    with tempfile.TemporaryDirectory() as output:
        step = prepared(name, folder, Path(output))
        touch_memory(folder)
        start = time.process_time(), time.perf_counter()
        note = step()
        cpu, wall = time.process_time() - start[0], time.perf_counter() - start[1]
    print(json.dumps({"cpu": cpu, "wall": wall, "peak": peak_memory(), "imports": imports, "note": note}))


def touch_memory(folder: Path) -> None:
    """Write to as much memory as a stage may need, in a process that then ends.

    A virtual machine gets memory from its host at the first write, which can take four seconds per gigabyte. This time
    is not that of a stage.
    """
    from cardiobench.core.memory import memory_limit

    stored = sum(file.stat().st_size for file in folder.glob("cache/**/*.arrow"))
    size = min(2 * stored + 2**30, memory_limit() // 2)
    subprocess.run([sys.executable, "-c", f"import numpy; numpy.ones({size}, numpy.uint8)"], check=True)


def peak_memory() -> float:
    """Return the peak memory of this process in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # The figure of `resource` includes the process that started this one.
        return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM")) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def prepared(name: str, folder: Path, output: Path) -> Callable[[], str]:
    """Return the function that a stage measures, after running everything before it."""
    from cardiobench.protocols.base import TaskData
    from cardiobench.runner.run import run

    if name == "frames":
        return probe_frames(folder)
    if name == "echo":
        from echo_suite import whole_suite

        return whole_suite(folder, output)
    if name not in ("open", "load", "score"):
        protocols = ("zero_shot", "probe", "knn") if name == "default run" else (name,)
        config = settings(folder, protocols, output)

        def whole_run() -> str:
            summary = run(config)
            assert not summary.failures, summary.failures
            return ", ".join(f"{result.protocol} {result.score.value:.4f}" for result in summary.results)

        return whole_run
    config = settings(folder, ("probe",), output)
    if name == "open":
        return lambda: f"{len(opened(config)[0].dataset.frame)} records"
    plan, task = opened(config)
    rows = plan.dataset.frame
    if name == "load":

        def load() -> str:
            embeddings = plan.store.load(rows["id"], rows["fingerprint"])
            features = TaskData(task, rows, embeddings, "mean").features
            return f"embeddings {features.nbytes / 1e6:.0f} MB"

        return load
    from cardiobench.results.context import ResultContext
    from cardiobench.scoring.predictions import Predictions
    from cardiobench.scoring.score import score

    references = plan.dataset.references(task)
    test = references[references["split"] == "test"]
    probability = np.random.default_rng(0).random(len(test))
    predicted = pd.DataFrame({"id": test["id"], "y_pred": np.where(probability > 0.5, *task.classes[::-1])})
    predicted = predicted.assign(**{f"p_{task.classes[0]}": 1 - probability, f"p_{task.classes[1]}": probability})
    joined = Predictions.join(references, predicted, task, source=MODEL)

    def scored() -> str:
        result = score(joined, references, ResultContext(protocol="probe"))
        return f"n = {len(test)}, {len(result.groups)} groups"

    return scored


def probe_frames(folder: Path) -> Callable[[], str]:
    """Return a function that probes the frames of EchoNet-Dynamic at its full size; store random embeddings first."""
    from cardiobench.data import catalog
    from cardiobench.embeddings.store import EmbeddingStore
    from cardiobench.protocols.base import TaskData
    from cardiobench.protocols.knn import NearestNeighbours
    from cardiobench.protocols.probe import LinearProbe

    rng, task = np.random.default_rng(0), catalog.task("echonet_dynamic/ef")
    names = [f"clip{number}" for number in range(CLIPS)]
    rows = pd.DataFrame({"id": names, "patient_id": names, "split": "train", task.target: rng.normal(55, 12, CLIPS)})
    rows.loc[7465:, "split"], rows.loc[8753:, "split"] = "validation", "test"
    store = EmbeddingStore(folder, "org/frames", "echonet_dynamic", {"revision": "1"})
    for start in range(0, CLIPS, 512) if len(store.missing(names, names)) else ():
        shard = names[start : start + 512]
        store.append(shard, shard, list(rng.standard_normal((len(shard), FRAMES, FRAME_DIM), dtype=np.float32)))

    def probed() -> str:
        data = TaskData(task, rows, store.load(names, names), "mean")
        for protocol in (LinearProbe(), NearestNeighbours()):
            protocol.predict(data, None, "")
        return f"probe and knn of {CLIPS} x {FRAMES} x {FRAME_DIM}"

    return probed


def main() -> None:
    """Write the release, then measure the requested stages."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--recordings",
        type=int,
        nargs="+",
        default=[FULL],
        help="numbers of recordings; several also show how time grows",
    )
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES[:-2])
    parser.add_argument("--folder", type=Path, help="folder for release and embeddings (default: a temporary one)")
    parser.add_argument("--one", choices=STAGES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        run_stage(asked.one, asked.folder)
        return
    seconds: dict[str, list[tuple[int, float]]] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for count in asked.recordings:
            for name, cpu in measured(asked, asked.folder or Path(temporary), count):
                seconds.setdefault(name, []).append((count, cpu))
    for name, points in seconds.items():
        for (fewer, less), (more, cpu) in pairwise(sorted(points)):
            exponent = math.log(cpu / less) / math.log(more / fewer)
            print(f"{name:<12} time grows as recordings^{exponent:.2f} from {fewer} to {more}")


def measured(asked: argparse.Namespace, root: Path, count: int) -> Iterator[tuple[str, float]]:
    """Write a release of this size, measure and print its stages; yield their CPU seconds."""
    folder = root / f"{count}x{asked.dim}"
    if set(asked.stages) - {"frames", "echo"}:
        make_release(folder, count)
    if set(asked.stages) - {"frames", "echo", "open", "score"}:
        fill_store(folder, asked.dim)
    size = count * asked.dim * 4 / 1e6
    print(f"{count} x {asked.dim}, {size:.0f} MB of embeddings; one thread, one process per stage")
    print(
        f"{'stage':<12}{'CPU s':>9}{'limit':>7}{'wall s':>9}{'peak MB':>9}{'limit':>7}{'imports':>9}{'rest / embeddings':>19}"
    )
    limits = LIMITS.get(asked.dim, {}) if count == FULL else {}
    for name in asked.stages:
        line = [sys.executable, __file__, "--one", name, "--folder", str(folder)]
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        done = subprocess.run(line, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True)
        result = json.loads(done.stdout.splitlines()[-1])
        cpu, memory = (f"{limit}" if limit else "" for limit in limits.get(name, (None, None)))
        print(
            f"{name:<12}{result['cpu']:9.1f}{cpu:>7}{result['wall']:9.1f}{result['peak']:9.0f}{memory:>7}"
            f"{result['imports']:9.0f}{(result['peak'] - result['imports']) / size:19.2f}   {result['note']}",
            flush=True,
        )
        yield name, result["cpu"]


if __name__ == "__main__":
    main()
