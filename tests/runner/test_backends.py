"""Test the clusters on which cells run: which one is used, what is kept, and how its loss is reported."""

import ipaddress
import os
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import joblib
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError, LostWorker
from cardiobench.core.workers import share_calls
from cardiobench.runner import backends
from cardiobench.runner.run import run
from cardiobench.runner.workers import on_one_core
from tests.ports import free_port

STARTED_RAY = """
import os
import psutil
from cardiobench.core.workers import share_calls
from cardiobench.runner import backends
with backends.backend("ray", 1, 1) as workers:
    assert list(share_calls(backends.environment, [()], 1, workers.executor)) == [backends.environment()]
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    sockets = [one for process in family for one in process.net_connections("tcp") if one.status == "LISTEN"]
    print(*sorted({one.laddr.ip for one in sockets}), os.environ["RAY_AUTH_MODE"])
"""


@pytest.mark.slow
def test_running_dask_cluster_is_used_and_kept():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=None) as cluster:
        with backends.backend(f"dask={cluster.scheduler_address}", 8, 4) as workers:
            assert workers.count == 3, "the cores of the cluster, not of this machine"
            pids = list(share_calls(os.getpid, [()] * 4, workers.count, workers.executor))
        with distributed.Client(cluster) as client:
            assert set(pids) <= set(client.run(os.getpid).values()), "its workers computed all cells, and still exist"


@pytest.mark.slow
def test_dask_workers_elsewhere_write_to_the_folder_of_the_run(tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        monkeypatch.chdir(tmp_path)  # Its workers keep their own.
        address = f"dask={cluster.scheduler_address}"
        run(
            RunConfig(
                models=("cardiobench/ecg-morphology",),
                tasks=("ptb_xl_sample/cd",),
                protocols=("probe",),
                output_dir=Path("here"),
                cache_dir=tmp_path,
                resamples=20,
                workers=0,
                backend=address,
            )
        )
    assert len(list(tmp_path.glob("here/*/*/probe/*.json"))) == 1


def test_malformed_address_of_dask_is_named():
    pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    with (
        pytest.raises(CardioBenchError, match=r"no Dask scheduler answers at foo: .*, or give --backend"),
        backends.backend("dask=foo", 2, 2),
    ):
        pytest.fail("it is not there")


@pytest.mark.slow
def test_dask_cluster_without_workers_is_named(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    monkeypatch.setattr(backends, "WORKER_SECONDS", 2.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster,
        pytest.raises(CardioBenchError, match=r"has no worker after 2 s\. Start some: dask worker"),
        backends.backend(f"dask={cluster.scheduler_address}", 2, 2),
    ):
        pytest.fail("it has no worker")


def test_a_process_evaluates_one_cell_at_a_time():
    """Otherwise, the first that ends would restore the number of threads for the others."""
    running, most = [], []

    def compute(_):
        running.append(None)
        most.append(len(running))
        time.sleep(0.05)
        running.pop()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: on_one_core(SimpleNamespace(compute=compute), None), range(4)))
    assert most == [1, 1, 1, 1]


@pytest.mark.slow
def test_dask_cluster_of_this_machine_has_a_worker_for_each_job():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    for jobs, cells, workers in ((3, 5, 3), (3, 2, 2)):
        with backends.backend("dask", jobs, cells), distributed.get_client() as client:
            assert len(client.run(os.getpid)) == workers


@pytest.mark.slow
def test_started_dask_cluster_refuses_strangers():
    distributed = pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    pytest.importorskip("cryptography", reason="cryptography is not installed: make test-cluster")
    with backends.backend("dask", 1, 1) as workers, distributed.get_client() as client:
        addresses = [client.scheduler.address, *client.scheduler_info()["workers"]]
        assert all(address.startswith("tls://127.0.0.1:") for address in addresses)
        assert list(share_calls(abs, [(-1,)], 1, workers.executor)) == [1]
        for address in addresses:
            port = address.rpartition(":")[2]
            for other in (f"tcp://127.0.0.1:{port}", f"tls://127.0.0.1:{port}"):
                security = distributed.security.Security.temporary() if other.startswith("tls") else None
                with pytest.raises((OSError, TimeoutError, TypeError)):
                    distributed.Client(other, timeout=2, security=security)


@pytest.mark.slow
def test_started_ray_cluster_listens_on_loopback_with_a_token(tmp_path):
    """Run in a process of its own, because Ray reads whether it has tokens once."""
    pytest.importorskip("ray", reason="ray is not installed: make test-cluster")
    environment = {**os.environ, "HOME": str(tmp_path)}
    environment.pop("RAY_ADDRESS", None)
    done = subprocess.run(
        [sys.executable, "-c", STARTED_RAY], env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    *hosts, mode = done.stdout.split()
    assert (
        hosts
        and all(ipaddress.ip_address(host.removeprefix("::ffff:")).is_loopback for host in hosts)
        and mode == "token"
    )
    assert (tmp_path / ".ray" / "auth_token").stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_killed_dask_worker_ends_cells_like_local_worker():
    pytest.importorskip("distributed", reason="distributed is not installed: make test-cluster")
    import dask

    once = {"distributed.scheduler.allowed-failures": 0}
    with (
        dask.config.set(once),
        pytest.raises(LostWorker, match="a worker of Dask was killed"),
        backends.backend("dask", 2, 2) as workers,
    ):
        list(share_calls(signal.raise_signal, [(signal.SIGKILL,)] * 2, workers.count, workers.executor))


@pytest.mark.slow
def test_ray_cluster_is_used_fully_and_kept_running():
    engine = pytest.importorskip("ray", reason="ray is not installed: make test-cluster")
    engine.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with backends.backend("ray", 1, 1) as workers:
            assert workers.count == 2, "fewer than the cores of this machine or the setting"
        assert engine.is_initialized()
    finally:
        engine.shutdown()


@pytest.mark.slow
def test_stale_ray_address_is_not_used(monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed: make test-cluster")
    with tempfile.TemporaryDirectory() as folder:  # Ray needs a short path for its sockets.
        monkeypatch.setenv("RAY_TMPDIR", folder)
        (Path(folder) / "ray").mkdir()
        (Path(folder) / "ray" / "ray_current_cluster").write_text("127.0.0.1:9")
        with backends.backend("ray", 1, 1) as workers:
            assert list(share_calls(lambda number: number + 1, [(1,)], 1, workers.executor)) == [2]


def test_unknown_or_missing_backend_is_named(monkeypatch):
    with pytest.raises(CardioBenchError, match="no backend 'slurm'"):
        backends.backend("slurm", 2, 2)
    for name, package, advice in (("dask", "dask.distributed", r"dask\[distributed\]"), ("ray", "ray", "install ray")):
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(CardioBenchError, match=advice), backends.backend(name, 2, 2):
            pytest.fail("it is not there")


def test_library_in_a_cell_does_not_use_the_backend_of_the_cells():
    with joblib.parallel_config("threading", n_jobs=2):
        assert on_one_core(SimpleNamespace(compute=lambda _: joblib.effective_n_jobs()), None) == 1


def test_ray_address_without_a_head_is_named_at_once(monkeypatch):
    pytest.importorskip("ray", reason="ray is not installed: make test-cluster")
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(CardioBenchError, match=f"no head of Ray answers at {address}"), backends.backend("ray", 2, 2):
        pytest.fail("it is not there")
