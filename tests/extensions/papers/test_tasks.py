"""Test tasks with the papers' label definitions: their rows, labels, classes and names differ from the benchmark's own."""

import numpy as np
import pandas as pd
import pytest

from cardiobench.data import catalog
from cardiobench.data.open import open_dataset
from cardiobench.data.twin import write_twin
from cardiobench.extensions.papers.tasks import NAMED_VIEWS, definitions, paper_tasks
from cardiobench.protocols.profile import find_profile
from cardiobench.tasks.group_labels import group_labels

pytestmark = pytest.mark.slow  # Every test reads four twins.


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    for name in ("georgia", "chapman_ningbo", "tmed2", "camus"):
        write_twin(name, folder / name)
    return folder


def labels(name, folder):
    task = catalog.task(name)
    return open_dataset(task.dataset, folder, need_media=False).references(task).set_index("id")["y_true"]


@pytest.mark.slow
def test_published_codes_give_fewer_positives(twins):
    own, published = labels("georgia/cd", twins), labels("georgia/cd_paper", twins)
    assert own.index.equals(published.index)
    # A bundle branch block alone is positive in one task and negative in the other; the reverse does not occur.
    assert set(zip(own, published, strict=True)) == {("CD", "CD"), ("CD", "no CD"), ("no CD", "no CD")}
    # Flutter without fibrillation is excluded in one task and negative in the other.
    assert set(labels("georgia/af", twins).index) <= set(labels("georgia/af_paper", twins).index)


@pytest.mark.slow
def test_paper_chapman_is_first_hospital(twins):
    rows = open_dataset("chapman_ningbo", twins, need_media=False).frame
    expected = set(rows.loc[rows["hospital"] == "chapman_shaoxing", "id"])
    assert set(labels("chapman_ningbo/cd_paper", twins).index) <= expected < set(rows["id"])
    assert all(group.column != "hospital" for group in catalog.task("chapman_ningbo/cd_paper").groups)


@pytest.mark.slow
def test_five_views_without_other(twins):
    own, named = labels("tmed2/view", twins), labels("tmed2/view_named", twins)
    assert "Other" in set(own) and named.equals(own[own != "Other"])
    assert catalog.task("tmed2/view_named").classes == NAMED_VIEWS and len(NAMED_VIEWS) == 5


def test_patient_quality_is_that_of_first_row(twins):
    own = catalog.task("camus/ef")
    dataset, task = open_dataset("camus", twins, need_media=False), find_profile("paper").task(own)
    rows = dataset.frame.sort_values("id").drop_duplicates("patient_id").set_index("patient_id")
    references = dataset.references(task).set_index("id")
    assert references["image_quality"].to_dict() == rows["image_quality"].to_dict()
    worse = dataset.references(own).set_index("id")["patient_image_quality"]
    assert (references["image_quality"] != worse[references.index]).any(), "not the grade of the worse view"
    assert [group.name for group in task.groups] == [group.name for group in own.groups]


def test_body_mass_index_of_children_by_the_cut_offs_of_adults():
    task = find_profile("paper").task(catalog.task("echonet_pediatric/ef"))
    assert [group.name for group in task.groups] == ["sex", "age", "bmi"]
    labels = group_labels(task.groups[-1], pd.DataFrame({"bmi": [18.49, 18.5, 24.99, 25.0, np.nan]}))
    assert list(labels[:4]) == ["Low", "Healthy", "Healthy", "High"] and pd.isna(labels[4])
    assert find_profile("default").task(task) is task


def test_profile_tasks():
    def names(dataset):
        return [task.name.partition("/")[2] for task in paper_tasks(catalog.spec(dataset))]

    assert names("ptb_xl") == ["cd_paper"], "the paper has no AF in PTB-XL"
    assert names("code15") == ["cd_paper", "af_paper"]
    assert names("echonet_dynamic") == ["ef", "view_named"]
    assert names("phantom_ecg") == ["cd", "af", "findings"]


@pytest.mark.parametrize("name", catalog.list_datasets())
def test_labels_of_published_tasks_are_columns_of_the_dataset(name):
    spec = catalog.spec(name)
    columns = {*spec.columns, *(task.target for task in spec.tasks)}
    for task in definitions(spec):
        assert task.target in columns and catalog.task(task.name) == task
        assert task not in spec.tasks


def test_task_of_five_views_keeps_its_classes_under_the_profile():
    named = catalog.task("hmc_qu/view_named")
    assert find_profile("paper").task(named).classes == named.classes == NAMED_VIEWS
