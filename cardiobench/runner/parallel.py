"""Many cells at once: whole cells are shipped to worker processes, to a Dask cluster or to Ray, through joblib.

A cell reads its embeddings from the store and writes its own files, so workers on other machines need the cache and the
output folder on a shared disk. Every worker computes on one core, so a cell gives the same bits wherever it runs.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from cardiobench.core.config import RunConfig
from cardiobench.core.errors import CardioBenchError, NotApplicable
from cardiobench.models.base import Encoder, LoadedModel
from cardiobench.results.score_result import ScoreResult
from cardiobench.runner.context import RunContext
from cardiobench.runner.eta import DurationEstimator, in_words, of_whole_run
from cardiobench.runner.evaluate import Cell, evaluate_cell, load_cached


def run_parallel(cells: Sequence[Cell], context: RunContext) -> None:
    """The cells of one protocol on one dataset: says what there is to do and what it will take, ships it, notes what came.

    Cells that are finished are kept, so a run that was interrupted goes on with those that are missing.
    """
    cells = applicable(cells, context)
    if not cells:
        return
    first, summary = cells[0], context.summary
    old = {} if context.config.overwrite else {n: found for n, cell in enumerate(cells) if (found := load_cached(cell))}
    todo = [n for n in range(len(cells)) if n not in old]
    prices, jobs = DurationEstimator.of(summary.results, first.protocol.name), workers(context.config)
    where = f"{first.source.spec.name} with {first.model.name}"
    context.console.print(
        f"{first.protocol.name}: {len(cells)} cells of {where}, {len(old)} kept, {len(todo)} to do, {jobs} at a time"
    )
    if todo and not prices:
        for line in first.protocol.plan_lines():
            context.console.print(f"  {line}")
    came: dict[int, CellOutcome] = {}

    def price_left(learned: str) -> None:
        open_cells = [cells[n].variant for n in todo if n not in came]
        seconds = sum(map(prices.estimate, open_cells)) / jobs
        context.console.print(f"  about {in_words(seconds)} for {len(open_cells)} cells, by what {learned} took")
        whole = of_whole_run(first, context.config)
        if len(whole) > len(cells):
            seconds = sum(map(prices.estimate, whole)) / jobs
            context.console.print(f"  at most about {in_words(seconds)} for all {len(whole)} cells of this run")

    if todo and prices:
        price_left("those before them")
    with context.console.progress(where, len(todo), doing="cross-validating") as advance:
        for done in dispatch([cells[n] for n in todo], context.config):
            new = not prices
            came[todo[done.place]] = done
            if done.result:
                prices.update(done.result)
            if new and prices and len(came) < len(todo):
                price_left("the first")
            advance(1)
    for n, cell in enumerate(cells):
        if n in old:
            summary.results.append(old[n])
        elif (done := came[n]).result is None:
            summary.not_applicable.append((cell.model.name, cell.task.name, cell.label, done.reason))
        else:
            summary.results.append(done.result)
            summary.files += done.files


def applicable(cells: Sequence[Cell], context: RunContext) -> list[Cell]:
    """The cells whose task the protocol can take; the others are noted, and no worker is started for them."""
    kept = []
    for cell in cells:
        try:
            cell.protocol.check(cell.task)
            kept.append(cell)
        except NotApplicable as error:
            context.summary.not_applicable.append((cell.model.name, cell.task.name, cell.label, str(error)))
    return kept


@dataclass(frozen=True)
class EncoderFacts:
    """What a cell has to know of an encoder once its embeddings are stored; the network itself stays where it is."""

    name: str
    revision: str
    modalities: tuple[str, ...]
    dim: int
    pooling: str
    sampling: Any
    preprocessing: Mapping[str, Any]
    warnings: tuple[str, ...]

    @classmethod
    def of(cls, encoder: Encoder) -> "EncoderFacts":
        """Return the facts of an encoder."""
        return cls(**{name: getattr(encoder, name) for name in cls.__dataclass_fields__})


def without_network(model: LoadedModel) -> LoadedModel:
    """Return a model whose encoder is its facts alone."""
    return replace(model, encoder=cast(Encoder, EncoderFacts.of(model.encoder)))


@dataclass(frozen=True)
class CellOutcome:
    """What came of a cell.

    Attributes:
        place: of the cell among those shipped.
        result: None where the protocol does not apply.
        files: written.
        reason: why it does not apply; empty otherwise.
    """

    place: int
    result: ScoreResult | None
    files: list[Path]
    reason: str


def run_one(place: int, cell: Cell) -> CellOutcome:
    """Work on a cell, on one core."""
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(1):
            result, files = evaluate_cell(cell)
    except NotApplicable as error:
        return CellOutcome(place, None, [], str(error))
    return CellOutcome(place, result, files, "")


def workers(config: RunConfig) -> int:
    """Cells at a time."""
    import joblib

    return config.jobs or joblib.cpu_count()


def dispatch(cells: Sequence[Cell], config: RunConfig) -> Iterator[CellOutcome]:
    """Work on all cells; yields what came of each as soon as it is known, in any order.

    Raises:
        CardioBenchError: there is no such backend, or its package is not installed.
    """
    light = [replace(cell, model=without_network(cell.model)) for cell in cells]
    jobs = min(workers(config), len(cells))
    with backend(config.backend, jobs) as found:
        import joblib

        if jobs <= 1 and config.backend == "loky":
            yield from (run_one(place, cell) for place, cell in enumerate(light))
            return
        # Ray's pool gives everything at the end; the files of its cells are there all the same as they finish.
        early = "list" if found == "ray" else "generator_unordered"
        with warnings.catch_warnings():
            # A worker whose memory has grown makes room for a new one between two cells; nothing is lost.
            warnings.filterwarnings("ignore", message="A worker stopped while some jobs")
            # One cell a message: they take seconds to minutes, and none should wait for another.
            yield from joblib.Parallel(return_as=early, batch_size=1)(
                joblib.delayed(run_one)(place, cell) for place, cell in enumerate(light)
            )


def backend(name: str, jobs: int) -> AbstractContextManager[str]:
    """A context in which joblib works on `loky`, `dask` (a cluster on this machine), `dask=tcp://HOST:PORT` or `ray`."""
    kind, _, address = name.partition("=")
    if kind == "loky" and not address:
        return _Loky(jobs)
    if kind == "dask":
        return _Dask(address, jobs)
    if kind == "ray" and not address:
        return _Ray(jobs)
    raise CardioBenchError(f"no backend '{name}'. Give --backend loky, dask=tcp://HOST:PORT or ray.")


class _Loky:
    """Processes of this machine."""

    def __init__(self, jobs: int):
        self.jobs = jobs

    def __enter__(self) -> str:
        import joblib

        # A worker that leaves the math libraries' threads alone would run jobs x cores of them.
        self.context = joblib.parallel_config(backend="loky", n_jobs=self.jobs, inner_max_num_threads=1)
        self.context.__enter__()
        return "loky"

    def __exit__(self, *error) -> None:
        self.context.__exit__(*error)


class _Dask:
    """A Dask cluster: the one at the address, else a new one on this machine."""

    def __init__(self, address: str, jobs: int):
        self.address, self.jobs = address, jobs

    def __enter__(self) -> str:
        import joblib

        try:
            from dask.distributed import Client, LocalCluster
        except ImportError:
            raise CardioBenchError("--backend dask needs its package: pip install 'dask[distributed]'") from None
        self.cluster = None if self.address else LocalCluster(self.jobs, threads_per_worker=1, dashboard_address=None)
        try:
            self.client = Client(self.address or self.cluster, timeout="10s")
        except (OSError, TimeoutError) as error:
            raise CardioBenchError(f"no Dask scheduler answers at {self.address}: {error}. Start one there.") from None
        self.context = joblib.parallel_config(backend="dask", pure=False)
        self.context.__enter__()
        return "dask"

    def __exit__(self, *error) -> None:
        self.context.__exit__(*error)
        self.client.close()
        if self.cluster:
            self.cluster.close()


class _Ray:
    """The Ray cluster that RAY_ADDRESS names, else a new one on this machine."""

    def __init__(self, jobs: int):
        self.jobs = jobs

    def __enter__(self) -> str:
        import joblib

        try:
            import ray
            from ray.util.joblib import register_ray
        except ImportError:
            raise CardioBenchError("--backend ray needs its package: pip install ray") from None
        self.started = not ray.is_initialized()
        if self.started:
            import os

            # Ray takes a local cluster's size from here; the size of one that runs already is its own.
            size = {} if os.environ.get("RAY_ADDRESS") else {"num_cpus": self.jobs}
            ray.init(include_dashboard=False, log_to_driver=False, **size)
        register_ray()
        self.context = joblib.parallel_config(backend="ray", n_jobs=self.jobs)
        self.context.__enter__()
        return "ray"

    def __exit__(self, *error) -> None:
        import ray

        self.context.__exit__(*error)
        if self.started:
            ray.shutdown()
