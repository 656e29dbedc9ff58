"""Check that the command in the message about unusable labels works."""

from types import SimpleNamespace

import pytest

from cardiobench.data.twin import write_twin
from cardiobench.extensions.dense.plan import NAMED, rejection_lines
from tests.printed import execute


@pytest.mark.slow
def test_command_that_lists_all_labels_works(printed, tmp_path, monkeypatch):
    write_twin("camus", tmp_path / "camus", patients=10)
    monkeypatch.setenv("CARDIOBENCH_DATA", str(tmp_path))
    labels = [SimpleNamespace(reason=str(number)) for number in range(NAMED + 1)]
    rejection_lines(SimpleNamespace(task=SimpleNamespace(name="camus/lv_seg", dataset="camus"), rejected=labels))
    (made,) = printed.of("cardiobench.extensions.dense.plan")
    assert execute(made, {}) == 0
