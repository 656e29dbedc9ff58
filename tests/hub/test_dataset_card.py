"""Test dataset cards: file facts in the Hub's format, and access forms."""

import io

import pyarrow.parquet as pq
import pytest
from datasets import Features, load_dataset
from datasets.info import DatasetInfosDict
from datasets.utils.metadata import MetadataConfigs
from huggingface_hub import DatasetCard, HfApi

from cardiobench.cli.main import main
from cardiobench.core.errors import LicenceError
from cardiobench.data import catalog
from cardiobench.data.prepare import companion_files
from cardiobench.hub.dataset_card import with_gate
from cardiobench.hub.dataset_index import index_files
from cardiobench.hub.publish import publish
from cardiobench.hub.publish_datasets import publications


def send(name, **options):
    _, failed = publish(publications(name, "org", **options), dry_run=False, on_diff=lambda text: None)
    assert not failed, failed


@pytest.mark.slow
def test_card_of_published_recordings_has_their_features_splits_and_size(hub, client, prepared, tmp_path):
    send("ptb_xl_sample", prepared=prepared)
    files = hub.store.repository("dataset", "org/ptb_xl_sample").files()
    card = DatasetCard(files["README.md"].decode())
    card.validate(repo_type="dataset")
    assert card.data.size_categories == ["n<1K"] and card.data.task_categories == ["other"]
    info = DatasetInfosDict.from_dataset_card_data(card.data)["default"]
    shards = {path: content for path, content in files.items() if path.startswith("data/")}
    rows = {path.split("/")[1].split("-")[0]: pq.ParquetFile(io.BytesIO(one)) for path, one in shards.items()}
    assert {name: split.num_examples for name, split in info.splits.items()} == {
        name: file.metadata.num_rows for name, file in rows.items()
    }
    assert info.download_size == sum(map(len, shards.values())) and info.dataset_size > 0
    assert info.features == Features.from_arrow_schema(rows["test"].schema_arrow)
    send("ptb_xl_sample")  # Only the card is sent; recordings and their facts remain.
    again = hub.store.repository("dataset", "org/ptb_xl_sample").files()["README.md"]
    assert DatasetInfosDict.from_dataset_card_data(DatasetCard(again.decode()).data)["default"] == info
    for path, content in {**shards, "README.md": again}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    loaded = load_dataset(str(tmp_path), cache_dir=str(tmp_path / "cache"))  # Rejects splits of other sizes.
    assert loaded.num_rows == {name: split.num_examples for name, split in info.splits.items()}


@pytest.mark.parametrize("name", catalog.list_datasets())
def test_every_card_is_valid_for_the_hub(hub, client, name):
    spec = catalog.spec(name)
    card = DatasetCard(with_gate(index_files(name)["README.md"].decode(), spec))
    card.validate(repo_type="dataset")
    fits = {"video": ["video-classification"], "image": ["image-classification"]}.get(spec.media, ["other"])
    kinds = {task.kind for task in spec.dense_tasks}
    fits += [category for kind, category in DENSE.items() if kind in kinds]
    assert card.data.task_categories == fits
    (info,) = DatasetInfosDict.from_dataset_card_data(card.data).values()
    (config,) = MetadataConfigs.from_dataset_card_data(card.data)
    assert info.config_name == config == "index"
    assert [entry["split"] for entry in card.data.configs[0]["data_files"]] == list(info.splits)
    own = DatasetCard(companion_files(name)["README.md"].decode())
    assert set(MetadataConfigs.from_dataset_card_data(own.data)) == {"default", *spec.configs}


DENSE = {"segmentation": "image-segmentation", "landmarks": "keypoint-detection"}


@pytest.mark.slow
def test_access_is_restricted_before_recordings_are_uploaded(hub, client, prepared):
    rights = {"prepared": prepared, "i_have_the_right": True}
    with pytest.raises(LicenceError, match="--gated"):
        publications("tmed2", "org", **rights)
    line = ["publish", "datasets", "tmed2", "--namespace", "org", "--prepared", str(prepared), "--gated"]
    assert main([*line, "--yes"]) == 2, "a gate alone grants no permission"
    assert main([*line, "--i-have-the-right"]) == 0
    assert not hub.store.repositories, "shown but not written"
    assert main([*line, "--i-have-the-right", "--yes"]) == 0
    asked = [line for line in hub.requests if "/settings" in line or "/commit/" in line]
    assert "/settings" in asked[0] and "/commit/" in asked[1]
    repository = hub.store.repository("dataset", "org/tmed2")
    assert repository.gated == "manual" and not repository.private
    assert HfApi().dataset_info("org/tmed2").gated == "manual"
    card = DatasetCard(repository.files()["README.md"].decode())
    card.validate(repo_type="dataset")
    spec = catalog.spec("tmed2")
    assert spec.access in card.data.extra_gated_prompt and spec.licence in card.data.extra_gated_prompt
    assert card.data.extra_gated_fields["I have my own agreement for TMED-2"] == "checkbox"
    before = len(repository.commits)
    send("tmed2", gated=True, **rights)
    assert len(repository.commits) == before


@pytest.mark.slow
@pytest.mark.parametrize("gate", [False, "auto"])
def test_open_repository_is_restricted_first(hub, client, prepared, gate):
    send("tmed2")
    repository = hub.store.repository("dataset", "org/tmed2")
    repository.gated = gate
    rights = {"prepared": prepared, "i_have_the_right": True}
    with pytest.raises(LicenceError, match="is public"):  # "private" only applies to new repositories.
        send("tmed2", private=True, **rights)
    assert not any(path.startswith("data/") for path in repository.files())
    send("tmed2", gated=True, **rights)
    assert repository.gated == "manual" and any(path.startswith("data/") for path in repository.files())
    send("tmed2")
    assert b"extra_gated_prompt" in repository.files()["README.md"], "it is still gated, so the questions remain"


@pytest.mark.parametrize("exists", [False, True])
def test_repository_that_cannot_be_restricted_is_not_left_behind(hub, client, capsys, exists):
    if exists:
        hub.store.put("dataset", "org/tmed2", {"README.md": b"# TMED-2"})
    hub.faults.add("PUT .*/settings", status=403)
    line = ["publish", "datasets", "tmed2", "--namespace", "org", "--gated", "--yes"]
    assert main(line) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "dataset org/tmed2: requests for access could not be switched on" in said and "HTTP 403" in said
    assert "No file was sent" in said and "give --private" in said and ("deleted again" in said) != exists
    assert len(hub.store.repositories) == exists
    if exists:
        assert set(hub.store.repository("dataset", "org/tmed2").files()) == {".gitattributes", "README.md"}
    assert main(line) == 0 and hub.store.repository("dataset", "org/tmed2").gated == "manual"


def test_repository_that_cannot_be_deleted_is_named(hub, client, capsys):
    hub.faults.add("PUT .*/settings", status=403)
    hub.faults.add("DELETE /api/repos", status=403)
    assert main(["publish", "datasets", "tmed2", "--namespace", "org", "--gated", "--yes"]) == 1
    assert "could not be deleted: delete it on the Hub" in " ".join(capsys.readouterr().out.split())
