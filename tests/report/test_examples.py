"""Pages of examples: what they say of their data, and where they lie."""

from types import SimpleNamespace

import pytest

from cardiobench.data import catalog
from cardiobench.report.page.examples import Example, _write


@pytest.mark.parametrize(
    ("name", "generated", "said"),
    [
        ("camus/lv_seg", False, "(CC BY-NC-SA 4.0). Their licence does not let them be passed on"),
        ("ptb_xl_sample/cd", False, "(CC BY 4.0). It stays on this machine"),
        ("camus/lv_seg", True, "This page shows generated recordings"),
    ],
)
def test_a_page_of_pictures_says_what_the_licence_of_its_data_allows(name, generated, said, tmp_path):
    task = catalog.task(name)
    dataset = SimpleNamespace(spec=catalog.spec(task.dataset), generated=generated)
    entry = SimpleNamespace(result=SimpleNamespace(model={"name": "org/one"}, label="dense"), setting="", path="one")
    shown = [Example("p1", "p1_4CH, frame 3", "dice 0.300", "worst", "none", "")]
    _, address = _write(entry, catalog.task("camus/lv_seg"), dataset, shown, tmp_path)
    page = (tmp_path / address).read_text()
    assert said in page
    assert "<b>worst</b>: p1_4CH, frame 3, dice 0.300." in page
    assert (tmp_path / "examples" / ".gitignore").read_text() == "*\n", "no commit takes it along"
