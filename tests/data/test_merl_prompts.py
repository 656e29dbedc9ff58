"""Test prompts in the format of MERL's repository."""

import json

import pytest

from cardiobench.core.errors import BadData, NotApplicable
from cardiobench.data import catalog
from cardiobench.data.prompts import prompt_files, prompts
from cardiobench.data.published_prompts import MERL_VERSION, NINE


@pytest.fixture
def clone(tmp_path):
    """Write a clone of the repository whose sentences name their class."""
    names = {label.strip("_") for task in ("all", "sub", "super") for label in catalog.task(f"ptb_xl/{task}").classes}
    file = tmp_path / "MERL" / "zeroshot" / "CKEPE_prompt.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({name: f"about {name}" for name in {*names, *NINE.values()}}))
    return file.parent.parent


@pytest.mark.parametrize("name", ["super", "sub", "diag", "form", "rhythm", "all"])
def test_every_class_of_ptb_xl_has_the_sentence_of_its_name(clone, name):
    for dataset in ("ptb_xl", "ptb_xl_500"):
        task = catalog.task(f"{dataset}/{name}")
        texts, version = prompts(task, clone)
        assert version == MERL_VERSION
        assert [texts[label] for label in task.classes] == [[f"about {label.strip('_')}"] for label in task.classes]
        assert prompt_files(task, clone) == [clone / "zeroshot" / "CKEPE_prompt.json"]


def test_cpsc2018_classes_have_prompts(clone):
    task = catalog.task("cpsc2018/nine")
    texts, _ = prompts(task, clone)
    assert list(texts) == list(task.classes)
    assert texts["PVC"] == ["about VPC"] and texts["NSR"] == ["about NORM"] and texts["RBBB"] == ["about CRBBB"]


def test_tasks_unknown_to_merl_have_no_prompts(clone):
    for name in ("ptb_xl/af", "code15/six", "sph/aha"):
        with pytest.raises(NotApplicable, match="there are no prompts for"):
            prompts(catalog.task(name), clone)


@pytest.mark.parametrize("content", ["[]", '{"NORM": ["a list"]}', "{", '{"NORM": "all others are missing"}'])
def test_file_in_another_format_is_refused(clone, content):
    (clone / "zeroshot" / "CKEPE_prompt.json").write_text(content)
    with pytest.raises(BadData, match="the format of the release"):
        prompts(catalog.task("cpsc2018/nine"), clone)
