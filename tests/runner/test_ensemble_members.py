"""Test ensemble members on several processes: each is trained once; refusals and cached cells cause no waiting."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from types import SimpleNamespace

import accelerate.utils
import pytest

from cardiobench.core.config import RunConfig
from cardiobench.core.console import Console
from cardiobench.core.errors import NotApplicable
from cardiobench.data import catalog
from cardiobench.protocols.ensemble import EnsembleProtocol
from cardiobench.runner import evaluate
from cardiobench.runner.cells.recordings import Cell
from cardiobench.runner.evaluate import train_members


class Squares(EnsembleProtocol):
    """Members that predict the square of their number; those in `refused` raise an error."""

    name = "squares"

    def __init__(self, count, refused=(), applies=True):
        self.count, self.refused, self.applies, self.trained = count, refused, applies, []

    @property
    def members(self):
        return self.count

    def check(self, task):
        if not self.applies:
            raise NotApplicable("not for this task")

    def prepare(self, data, encoder, variant):
        return data

    def train(self, prepared, member):
        self.trained.append(member)
        if member in self.refused:
            raise NotApplicable(f"member {member} failed")
        return member**2

    def combine(self, data, answers):
        return tuple(answers)


class Trained(Cell):
    """Cell without recordings."""

    def load_cached(self):
        return self.plan

    def read(self, recent):
        return None


def cell_of(key, protocol, cached=False):
    model = SimpleNamespace(encoder=None, name="m", given=frozenset())
    return Trained(model, protocol, RunConfig(), key, (catalog.task("camus/ef"),), cached, "", frozenset())


def on_processes(count, cells, monkeypatch):
    """Run `count` processes as threads; return what each of them sends and returns."""
    told, everybody = [], Barrier(count, timeout=60)

    def gather(own):
        told.append(own)
        everybody.wait()
        return [job for one in told for job in one]

    def process(rank):
        accelerator = SimpleNamespace(process_index=rank, num_processes=count)
        context = SimpleNamespace(accelerator=accelerator, config=RunConfig(), console=Console(main=False))
        return train_members(cells, context)

    monkeypatch.setattr(accelerate.utils, "gather_object", gather)
    monkeypatch.setattr(evaluate, "share", lambda values: values)
    with ThreadPoolExecutor(count) as pool:
        returned = list(pool.map(process, range(count)))
    return told, returned


@pytest.mark.parametrize("processes", [2, 3, 8])
def test_every_member_is_trained_by_one_process_and_known_to_all(processes, monkeypatch):
    cells = [cell_of("a", Squares(3)), cell_of("b", Squares(5), cached=True), cell_of("c", Squares(2))]
    told, returned = on_processes(processes, cells, monkeypatch)
    jobs = [(n, member) for own in told for n, member, _, _ in own]
    assert sorted(jobs) == [(0, 0), (0, 1), (0, 2), (2, 0), (2, 1)], "each once, and none for the cached cell"
    assert max(map(len, told)) - min(map(len, told)) <= 1
    for trained in returned:
        known = {one.subject: one.members for one in trained if one.members}
        assert {key: list(one.checked()) for key, one in known.items()} == {"a": [0, 1, 4], "c": [0, 1]}
        assert all(one.seconds >= 0 for one in known.values())


def test_first_refusal_is_shared_by_all_processes(monkeypatch):
    cells = [cell_of("a", Squares(4, refused=(1, 3))), cell_of("b", Squares(2, applies=False))]
    _, returned = on_processes(2, cells, monkeypatch)
    for trained in returned:
        with pytest.raises(NotApplicable, match="member 1 failed"):
            trained[0].members.checked()
        with pytest.raises(NotApplicable, match="not for this task"):
            trained[1].members.checked()
    assert cells[1].protocol.trained == []


def test_single_process_trains_and_evaluates():
    protocol = Squares(3)
    context = SimpleNamespace(accelerator=SimpleNamespace(num_processes=1))
    (cell,) = train_members([cell_of("a", protocol)], context)
    assert cell.members is None and protocol.trained == []
    assert protocol.predict(None, None, "") == (0, 1, 4)
