"""Test accelerate with one and two real processes, any batch size, kills and restarts: equal embeddings and scores."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from cardiobench.cli.eval import main
from tests.forked import ForkedPython, run_python
from tests.ports import free_port

# One worker runs all these tests, so that the undisturbed run is computed once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("processes")]

ACCELERATE = Path(sys.executable).parent / "accelerate"
TWO = [
    "--multi_gpu",
    "--num_processes",
    "2",
    "--num_machines",
    "1",
    "--mixed_precision",
    "no",
    "--dynamo_backend",
    "no",
]
VARYING = {"date", "commit", "seconds", "libraries"}  # The process of the tests may have imported other libraries.


def settings(folder, *more, model="cardiobench/pixel-motion", tasks=("phantom_echo/ef",)):
    return [
        "--model",
        model,
        "--tasks",
        *tasks,
        "--protocols",
        "probe",
        "--limit",
        "12",
        "--output-dir",
        folder / "results",
        "--cache-dir",
        folder / "cache",
        *more,
    ]


def launcher(launch=TWO):
    """Return the start of a command line, with a port that no launcher of another test still holds."""
    return [ACCELERATE, "launch", "--main_process_port", str(free_port()), *launch, "-m", "cardiobench.eval"]


def line(*given, launch=TWO, **more):
    return [*launcher(launch), *settings(*given, **more)]


def run_here(*given, **more):
    """Run in this process, which is what one process without a launcher does."""
    assert main([str(part) for part in settings(*given, **more)]) == 0


def call(*arguments, **more):
    done = subprocess.run([str(part) for part in arguments], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_two(*given, **more):
    """Run two processes of a launcher and return what they print."""
    return call(*line(*given, **more))


def embeddings(folder):
    """Return vectors by (id, part), read from the shards without the package."""
    found = {}
    for shard in sorted(folder.glob("cache/embeddings/*/*/*/*.arrow")):
        with pa.memory_map(str(shard)) as source:
            table = pa.ipc.open_file(source).read_all()
        for name, part, vector in zip(
            table["id"].to_pylist(), table["part"].to_pylist(), table["vector"].to_pylist(), strict=True
        ):
            assert (name, part) not in found, f"{name} was encoded twice"
            found[name, part] = np.array(vector)
    return found


def results(folder):
    """Return every result without what differs between processes."""
    files = {
        path.relative_to(folder): json.loads(path.read_text())
        for path in sorted(folder.glob("results/*/*/*/*__*.json"))
    }
    for content in files.values():
        del (
            content["seal"],
            content["predictions_sha256"],
        )  # Digest of the whole file, including the time and last bits.
        content["stamp"] = {key: value for key, value in content["stamp"].items() if key not in VARYING}
        del content["cost"]["timings"]
    return files


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    """Run one process with batches of eight, undisturbed."""
    folder = tmp_path_factory.mktemp("one")
    run_here(folder)
    return folder


def assert_same(folder, other):
    first, second = embeddings(folder), embeddings(other)
    assert first.keys() == second.keys() and len(first) > 20
    for key, vector in first.items():
        np.testing.assert_allclose(second[key], vector, rtol=1e-5, atol=1e-5)
    assert results(folder) == results(other) != {}


def test_two_processes_give_the_results_of_one(one, tmp_path):
    printed = run_two(tmp_path)
    assert len(list(tmp_path.glob("cache/embeddings/*/*/*/*rank1*.arrow"))) > 0, "the second process encoded its share"
    assert printed.count("plan") == 1, "only one process prints"
    assert_same(one, tmp_path)


def test_impossible_push_ends_both_processes_first(tmp_path):
    model = tmp_path / "network"
    model.mkdir()
    (model / "config.json").write_text("{}")
    ended = subprocess.run(
        [str(part) for part in line(tmp_path, "--push-to-hub", model=model)],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_TOKEN": "hf_made_up"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1 and ended.stderr.count(f"{model} is a local folder") == 1
    assert "terminate called" not in ended.stderr and "exitcode: -6" not in ended.stderr
    assert "hf_made_up" not in ended.stdout + ended.stderr and not list(tmp_path.glob("cache/embeddings/*"))


def test_two_machines_give_the_results_of_one(one, tmp_path, tmp_path_factory):
    """Run two nodes on the loopback interface, each with its own launcher and temporary folder, and shared folders."""
    port, nodes = free_port(), []
    for rank in range(2):
        launch = [*TWO, "--machine_rank", str(rank), "--main_process_ip", "127.0.0.1", "--main_process_port", str(port)]
        launch[launch.index("--num_machines") + 1] = "2"
        own = tmp_path_factory.mktemp("node")  # A short name, because it holds sockets.
        nodes.append(
            subprocess.Popen(
                [str(part) for part in line(tmp_path, launch=launch)],
                env={**os.environ, "TMPDIR": str(own)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        )
    printed = [node.communicate(timeout=300)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], "".join(printed)
    assert [text.count("plan") for text in printed] == [1, 0], "only the first machine prints"
    assert len(list(tmp_path.glob("cache/embeddings/*/*/*/*rank1*.arrow"))) > 0, "the second machine encoded its share"
    assert_same(one, tmp_path)


@pytest.mark.parametrize("more", [("--batch-size", "1"), ("--batch-size", "3", "--workers", "0")])
def test_batch_size_does_not_matter(one, tmp_path, more):
    run_here(tmp_path, *more)
    assert_same(one, tmp_path)


STOPPED = """
import itertools, os, sys
import cardiobench.embeddings.extract as extract
encode, calls = extract.PartEncoder.__call__, itertools.count(1)
def encode_seven(*arguments):
    if next(calls) == 8:
        os.kill(os.getpid(), int(sys.argv[1]))
    return encode(*arguments)
extract.SHARD, extract.PartEncoder.__call__ = 4, encode_seven
from cardiobench.cli.eval import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(("sent", "code", "stored"), [(signal.SIGKILL, -9, 4), (signal.SIGTERM, 143, 7)])
def test_interrupted_runs_give_the_results_of_uninterrupted_ones(one, tmp_path, sent, code, stored):
    """Stop after one shard of four recordings and three more, which are stored on SIGTERM."""
    given = [tmp_path, "--batch-size", "1", "--workers", "0"]
    done = run_python("-c", STOPPED, int(sent), *settings(*given))
    assert done.returncode == code and "Traceback" not in done.stderr
    assert sent == signal.SIGKILL or "finished results are kept. Run the same command again" in done.stderr
    assert len({name for name, _ in embeddings(tmp_path)}) == stored < len({name for name, _ in embeddings(one)})
    assert results(tmp_path) == {}
    run_here(*given)
    assert_same(one, tmp_path)


def test_two_runs_at_once_do_not_disturb_each_other(one, tmp_path):
    both = [ForkedPython(["-m", "cardiobench.eval", *settings(tmp_path)]) for _ in range(2)]
    for process in both:
        error = process.communicate()[1]
        assert process.returncode == 0, error
    assert results(one) == results(tmp_path)
