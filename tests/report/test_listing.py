"""What `cardiobench list` says of every dataset."""

from cardiobench.data import catalog
from cardiobench.report.listing import print_listing


def test_every_dataset_task_and_model_is_there(capsys, monkeypatch):
    monkeypatch.delenv("CARDIOBENCH_DATA", raising=False)
    print_listing()
    printed = capsys.readouterr().out
    lines = {line.split()[0]: line for line in printed.splitlines() if line.split()}
    for name in catalog.list_datasets():
        spec = catalog.spec(name)
        assert all(task.name.partition("/")[2] in printed for task in spec.tasks)
        assert ("generated" in lines[name]) == spec.generated
    assert "50 / 14 / 52" in lines["ptb_xl_sample"]
    assert "cardiobench/minirocket" in printed
