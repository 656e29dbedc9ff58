"""Test the project's own repositories: allowed content, one commit each, and none without changes."""

import io
import json
import subprocess

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from cardiobench.cli.main import main
from cardiobench.core.errors import LicenceError
from cardiobench.core.io import sha256_of_file
from cardiobench.data import catalog
from cardiobench.hub import cards, publish_datasets, publish_metrics, publish_models
from cardiobench.hub.commit import RepoOptions, Target
from cardiobench.hub.publish import GRADIO, Publication, publish
from cardiobench.hub.push_results import push
from cardiobench.metrics.load import list_metrics
from cardiobench.models.cards import list_models
from tests.hub.conftest import BOB
from tests.hub.results import result

AGREEMENTS = ("echonet_dynamic", "echonet_lvh", "echonet_pediatric", "tmed2", "mimic_iv_echo", "camus")


def send(publications):
    said = []
    written, failed = publish(publications, dry_run=False, on_diff=said.append)
    assert not failed, failed
    return written, "\n".join(said)


def files(hub, kind, name, revision="main"):
    return dict(hub.store.repository(kind, name).files(revision))


@pytest.mark.slow
@pytest.mark.parametrize("name", catalog.list_datasets())
def test_every_dataset_without_its_recordings(hub, client, name):
    written, _ = send(publish_datasets.publications(name, "cardiobench"))
    repository = hub.store.repository("dataset", f"cardiobench/{name}")
    assert len(written) == 2 and len(repository.history()) == 2 and len(repository.history("script")) == 2
    main_branch, script = files(hub, "dataset", repository.id), files(hub, "dataset", repository.id, "script")
    own = catalog.dataset_folder(name)
    text = (own / "README.md").read_text("utf-8")
    assert main_branch["README.md"].decode().endswith(text[cards.FRONT.match(text).end() :])
    assert "eval.yaml" not in main_branch, "the Hub does not know its framework yet"
    assert {path for path in main_branch if path.startswith("splits/")} == {
        f"splits/{path.name}" for path in (own / "splits").glob("*.csv")
    }
    assert f"{name}.py" not in main_branch, "datasets 4 and later reject a repository with a script of the same name"
    assert not any(path.endswith((".avi", ".png", ".dat")) for path in main_branch)
    assert "twin.py" not in {*main_branch, *script}
    for path in (path for path in main_branch if path.endswith(".parquet")):
        columns = pq.read_table(io.BytesIO(main_branch[path])).column_names
        assert path.startswith("index/") and set(columns) <= {
            "id",
            "patient_id",
            "study_id",
            "split",
            "part",
            "recordings",
        }
    assert set(script) == {".gitattributes", "README.md", f"{name}.py"}
    assert script[f"{name}.py"] == main_branch["builder.py"] == (own / "builder.py").read_bytes()
    assert repository.tags == {f"v{catalog.spec(name).version}": repository.resolve("main")}


@pytest.mark.parametrize(
    ("name", "rows"), [("tmed2", {"train": 360, "validation": 119, "test": 119}), ("echonet_lvh", {"splits": 3})]
)
def test_public_index_loads_with_load_dataset(hub, client, name, rows, tmp_path):
    from datasets import load_dataset

    send(publish_datasets.publications(name, "cardiobench"))
    for path, content in files(hub, "dataset", f"cardiobench/{name}").items():
        (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name / path).write_bytes(content)
    loaded = load_dataset(str(tmp_path / name), cache_dir=str(tmp_path / "cache"))
    assert {split: part.num_rows for split, part in loaded.items()} == rows
    card = (tmp_path / name / "README.md").read_text("utf-8")
    assert "An index, without recordings" in card and f'cardiobench.load_dataset("{name}", data_dir="RAW")' in card
    send(publish_datasets.publications(name, "cardiobench"))
    assert len(hub.store.repository("dataset", f"cardiobench/{name}").history()) == 2, (
        "unchanged content makes no commit"
    )


@pytest.mark.slow
def test_publishing_again_commits_nothing(hub, client, prepared):
    wanted = publish_datasets.publications("ptb_xl_sample", "org", prepared=prepared)
    send(wanted)
    repository = hub.store.repository("dataset", "org/ptb_xl_sample")
    before = (dict(repository.branches), len(repository.commits), len(hub.requests))
    _, said = send(publish_datasets.publications("ptb_xl_sample", "org", prepared=prepared))
    assert (repository.branches, len(repository.commits)) == before[:2] and said.count("nothing to change") == 2
    assert not any("/large/" in line or "/commit/" in line for line in hub.requests[before[2] :])
    kept = {path for path in repository.files() if path.startswith("data/")}
    send(publish_datasets.publications("ptb_xl_sample", "org"))
    assert {path for path in repository.files() if path.startswith("data/")} == kept, (
        "without --prepared they are skipped"
    )


@pytest.mark.slow
def test_one_change_is_one_commit_and_stale_files_go(hub, client, prepared):
    send(publish_datasets.publications("ptb_xl_sample", "org", prepared=prepared))
    repository = hub.store.repository("dataset", "org/ptb_xl_sample")
    stale = {
        "data/train-00000-of-00009.parquet": b"old",
        "splits/old.csv": b"",
        "notes.txt": b"a person's",
        "eval.yaml": b"x\n",
    }
    repository.commit("main", stale, (), "by hand", "someone")
    _, said = send(publish_datasets.publications("ptb_xl_sample", "org", prepared=prepared))
    assert len(repository.history()) == 4 and "notes.txt" in repository.files()
    assert not {"data/train-00000-of-00009.parquet", "splits/old.csv"} & set(repository.files())
    (deleted,) = [line for line in said.splitlines() if "; deleted: " in line]
    assert "data/train-00000-of-00009.parquet" in deleted and "eval.yaml" in deleted


@pytest.mark.parametrize("name", AGREEMENTS)
def test_restricted_recordings_are_never_made_public(hub, client, prepared, name, tmp_path):
    """Test a twin whose note is changed to claim that it is the release, as with real data."""
    spec = catalog.spec(name)
    folder = tmp_path / "cardiobench" / name
    (folder / "data").mkdir(parents=True)
    pq.write_table(pa.table({"id": ["patient1"]}), folder / "data" / "test-00000-of-00001.parquet")
    recordings = (folder / "data" / "test-00000-of-00001.parquet").read_bytes()
    (folder / "labels").mkdir()
    (folder / "labels" / "lv_seg.parquet").write_bytes(recordings)
    shards, labels = (
        {path.name: sha256_of_file(path) for path in (folder / part).iterdir()} for part in ("data", "labels")
    )
    note = {"name": name, "version": spec.version, "digest": "0", "twin": False, "absent": {}}
    note |= {
        "shards": shards,
        "labels": labels,
        "linked": [],
        "missing": ["clips/patient7.avi"],
        "unreadable": ["patient8", "patient9"],
    }
    (folder / "cardiobench.json").write_text(json.dumps(note))
    for rights in ({}, {"i_have_the_right": True}, {"private": True}, {"gated": True}):
        with pytest.raises(LicenceError, match="may not be published"):
            publish_datasets.publications(name, "org", prepared=tmp_path, **rights)
    both = {"private": True, "i_have_the_right": True, "prepared": tmp_path}
    hub.store.put("dataset", f"org/{name}", {"README.md": b"public already"})
    with pytest.raises(LicenceError, match="is public"):
        send(publish_datasets.publications(name, "org", **both))
    there = files(hub, "dataset", f"org/{name}")
    assert not any(path.startswith(("data/", "labels/")) for path in there) and not hub.store.large
    del hub.store.repositories["dataset", f"org/{name}"]
    send(publish_datasets.publications(name, "org", **both))
    assert hub.store.repository("dataset", f"org/{name}").private
    for path in ("data/test-00000-of-00001.parquet", "labels/lv_seg.parquet"):
        assert files(hub, "dataset", f"org/{name}")[path] == recordings
    sent = files(hub, "dataset", f"org/{name}")["cardiobench.json"]
    assert b"patient" not in sent and [len(json.loads(sent)[key]) for key in ("missing", "unreadable")] == [1, 2]


def test_code_of_twin_is_not_published(hub, client):
    code = (catalog.dataset_folder("georgia") / "twin.py").read_bytes()
    send(publish_datasets.publications("georgia", "org"))
    repository = hub.store.repository("dataset", "org/georgia")
    assert set(repository.branches) == {"main", "script"}
    for branch in repository.branches:
        sent = repository.files(branch)
        assert "README.md" in sent and "twin.py" not in sent and code not in sent.values()


def test_published_twins_are_marked_as_synthetic(hub, client, prepared):
    rights = {"private": True, "i_have_the_right": True}
    with pytest.raises(LicenceError, match="whatever its folder says of itself"):
        publish_datasets.publications("tmed2", "org", prepared=prepared)
    send(publish_datasets.publications("tmed2", "org", prepared=prepared, **rights))
    there = files(hub, "dataset", "org/tmed2")
    card = there["README.md"].decode()
    assert card.split("---\n", 2)[2].startswith("# TMED-2: synthetic twin\n\n> **Synthetic twin of TMED-2, with ")
    infos = json.loads(there["dataset_infos.json"])
    assert infos["default"]["description"].startswith("Synthetic twin of TMED-2, with ") and "dataset_info" not in card
    assert yaml.safe_load(cards.FRONT.match(card)["yaml"])["configs"]
    assert {path for path in there if path.startswith("data/")} == {
        f"data/{split}-00000-of-00001.parquet" for split in ("train", "validation", "test")
    }


@pytest.mark.parametrize("name", list_metrics())
def test_every_metric_is_a_space(hub, client, root, name):
    send([publish_metrics.publication(name, "cardiobench")])
    space = hub.store.repository("space", f"cardiobench/{name}")
    there = space.files()
    assert set(there) == {".gitattributes", "README.md", "app.py", "requirements.txt", "formula.py", f"{name}.py"}
    front = yaml.safe_load(cards.FRONT.match(there["README.md"].decode())["yaml"])
    assert front["sdk"] == "gradio" and front["sdk_version"] == GRADIO
    commit = subprocess.run(
        ["git", "-C", str(root / "hf_metrics" / name), "log", "-1", "--format=%H", "--", "."],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    assert (commit or "of release") in there["requirements.txt"].decode()
    assert b"{" not in there["requirements.txt"]
    for file in (f"{name}.py", "formula.py"):
        assert there[file] == (root / "hf_metrics" / name / file).read_bytes()


def test_metrics_in_another_namespace_use_its_name(hub, client):
    send(publish_metrics.publications(["mae"], "org"))
    assert b'evaluate.load("org/mae")' in files(hub, "space", "org/mae")["mae.py"]
    assert b"cardiobench/mae" not in files(hub, "space", "org/mae")["README.md"]


def test_models_keep_results_on_cards(hub, client):
    send(publish_models.publications([], "cardiobench"))
    names = [name for name in list_models() if name.startswith("cardiobench/")]
    assert len(names) >= 5 and all(("model", name) in hub.store.repositories for name in names)
    name = "cardiobench/pixel-motion"
    push([result(model={"name": name, "revision": "1"})], name, dry_run=False, on_diff=lambda text: None)
    repository = hub.store.repository("model", name)
    head = repository.resolve("main")
    send(publish_models.publications(["pixel-motion"], "cardiobench"))
    assert repository.resolve("main") == head
    edited = repository.files()["README.md"].replace(b"baseline", b"changed by hand")
    repository.commit("main", {"README.md": edited}, (), "by hand", "someone")
    send(publish_models.publications([name], "cardiobench"))
    from huggingface_hub import ModelCard

    card = ModelCard.load(name)
    assert card.data.license == "apache-2.0" and "baseline" in card.data.tags and "echo" in card.data.tags
    assert [r.metric_type for r in card.data.eval_results] == ["f1_macro", "auroc"]


def test_card_of_a_copy_names_its_repository(hub, client):
    send(publish_models.publications(["minirocket"], "org"))
    card = files(hub, "model", "org/minirocket")["README.md"].decode()
    assert "# org/minirocket" in card and "--model cardiobench/minirocket" in card


def test_refused_card_leaves_no_empty_repository(hub, client):
    wanted = [
        Publication(
            Target("model", "org/a", branch), lambda there: {"README.md": b"---\na: b\n---\n"}, RepoOptions(), "x"
        )
        for branch in ("main", "script")
    ]
    hub.faults.add("POST /api/validate-yaml", status=400)
    written, failed = publish(wanted, dry_run=False, on_diff=lambda text: None)
    assert not written and "does not accept README.md" in str(failed[0]) and not hub.store.repositories


def test_public_repository_is_not_written_if_a_private_one_was_requested(hub, client):
    hub.store.put("model", "org/a", {"README.md": b"# a"})
    wanted = Publication(Target("model", "org/a"), lambda there: {"b.txt": b"b"}, RepoOptions(private=True), "x")
    for dry_run in (True, False):
        written, failed = publish([wanted], dry_run=dry_run, on_diff=lambda text: None)
        assert not written and "exists and is public" in str(failed[0])
    assert "b.txt" not in files(hub, "model", "org/a")


def test_models_of_others_are_not_published():
    others = [name for name in list_models() if not name.startswith("cardiobench/")]
    for name in others[:1]:
        with pytest.raises(LicenceError, match="its authors'"):
            publish_models.publications([name], "cardiobench")


def test_dry_run_is_the_default(hub, client, capsys):
    for line in (["metrics", "mae", "f1_macro"], ["metrics", "mae", "--dry-run"], ["datasets", "tmed2"], ["models"]):
        assert main(["publish", *line]) == 0
        assert "Nothing was written" in capsys.readouterr().out
    assert not hub.store.repositories and not any(line.startswith(("POST", "PUT")) for line in hub.requests)
    assert main(["publish", "metrics", "mae", "--private", "--yes"]) == 0
    printed = capsys.readouterr().out
    assert (
        "5 files change: README.md, mae.py, formula.py and 2 more" in printed
        and "/spaces/cardiobench/mae/commit/" in printed
    )
    assert hub.store.repository("space", "cardiobench/mae").private
    assert main(["publish", "metrics", "mean"]) == 2 and "no metric 'mean'" in capsys.readouterr().err


def test_refused_repository_does_not_stop_the_others(hub, client, capsys):
    client(BOB)
    hub.store.put("space", "bob/mae", {})
    assert main(["publish", "metrics", "mae", "--yes"]) == 1
    assert "FAILED space cardiobench/mae: your token does not have write access there" in capsys.readouterr().out
    one, other = (
        Publication(Target("model", name), lambda there: {"a.txt": b"a\n"}, RepoOptions(), "x")
        for name in ("org/a", "bob/b")
    )
    written, failed = publish([one, other], dry_run=False, on_diff=lambda text: None)
    assert [done.target.id for done in written] == ["bob/b"] and len(failed) == 1
