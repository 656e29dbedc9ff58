"""Time the echo suite and the quick suite, from stored embeddings to the report, with 1 and 2 jobs.

    OMP_NUM_THREADS=1 python benchmarks/jobs.py [--suites echo quick] [--jobs 2]

The output has wall and CPU seconds, the ratio of wall seconds, and the largest ratio that the CPU seconds allow on idle cores: a single
process relative to the main process, or to an equal share of all work if that is more. Unlike wall time, CPU time is independent of other load.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

SUITES = ("echo", "quick")
QUICK_MODELS = ("cardiobench/constant", "cardiobench/metadata", "cardiobench/ecg-morphology", "cardiobench/minirocket")


def cpu_seconds(who: int) -> float:
    """Return the CPU seconds of this process or of its finished children."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def measure(suite: str, jobs: int, folder: Path) -> None:
    """Run a suite from stored embeddings in this process and its workers; print its cost as JSON."""
    from echo_suite import stored_suite

    from cardiobench.core import workers
    from cardiobench.core.config import RunConfig
    from cardiobench.runner import run

    with tempfile.TemporaryDirectory() as place:
        if suite == "echo":
            config, _ = stored_suite(folder, Path(place))
        else:
            config = RunConfig(models=QUICK_MODELS, suite="quick", output_dir=Path(place), cache_dir=folder / "cache")
        config = replace(config, jobs=jobs)
        start, before = time.perf_counter(), cpu_seconds(resource.RUSAGE_SELF)
        summary = run.run(config)
        if jobs > 1:
            workers.pool(jobs - 1).shutdown(wait=True)  # The time of a process counts after it has ended.
        wall, main = time.perf_counter() - start, cpu_seconds(resource.RUSAGE_SELF) - before
    assert not summary.failures, summary.failures
    scores = [(one.model["name"], one.task, one.label, one.score.value, one.score.low) for one in summary.results]
    apart = cpu_seconds(resource.RUSAGE_CHILDREN)
    print(json.dumps({"wall": wall, "main": main, "workers": apart, "scores": scores}))


def measured(suite: str, jobs: int, folder: Path) -> dict:
    """Return the cost of a run in a separate process."""
    line = [sys.executable, __file__, "--one", suite, "--jobs", str(jobs), "--folder", str(folder)]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(line, env={**os.environ, **threads}, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure both settings and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suites", nargs="+", choices=SUITES, default=SUITES)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="folder for embeddings (default: a temporary one)")
    parser.add_argument("--one", choices=SUITES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one:
        measure(asked.one, asked.jobs, asked.folder)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        for suite in asked.suites:
            if suite == "quick":
                measured(suite, 1, folder)  # The first run stores the embeddings.
            alone, apart = measured(suite, 1, folder), measured(suite, asked.jobs, folder)
            assert alone["scores"] == apart["scores"], "results differ"
            for jobs, one in ((1, alone), (asked.jobs, apart)):
                print(
                    f"{suite}, {jobs} jobs: {one['wall']:.1f} s; CPU seconds: {one['main']:.1f} here, {one['workers']:.1f} in workers"
                )
            busiest = max(apart["main"], (apart["main"] + apart["workers"]) / asked.jobs)
            idle = (alone["main"] + alone["workers"]) / busiest
            print(
                f"{suite}: {alone['wall'] / apart['wall']:.2f} x by the clock, at most {idle:.2f} x by CPU time (limit 1.7); all "
                f"{len(alone['scores'])} scores equal",
                flush=True,
            )


if __name__ == "__main__":
    main()
