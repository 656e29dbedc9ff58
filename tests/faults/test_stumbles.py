"""Check files and packages that libraries do not expect: each gives one message."""

import io
import json
import zipfile
from importlib.metadata import EntryPoint

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cardiobench.cli.main import main
from cardiobench.core import plugins
from cardiobench.core.errors import BadConfig, BadData
from cardiobench.embeddings.vector_files import NOTE, read_vectors
from cardiobench.results.record import OtherSchema
from cardiobench.results.score_result import ScoreResult
from tests.hub.results import consistent
from tests.leaderboard.submissions import sealed

DEEP = "[" * 100_000 + "]" * 100_000


def npz(**members: bytes) -> bytes:
    """Return an NPZ archive with ids, vectors and further members of any content."""
    file = io.BytesIO()
    np.savez(file, id=np.array(["a", "b"]), vectors=np.zeros((2, 3), dtype=np.float32))
    with zipfile.ZipFile(file, "a") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_dot_", "."), content)
    return file.getvalue()


def parquet(note: bytes) -> bytes:
    file = io.BytesIO()
    table = pa.table({"id": ["a", "b"], "v0": [0.1, 0.2], "v1": [0.3, 0.4]}).replace_schema_metadata({NOTE: note})
    pq.write_table(table, file)
    return file.getvalue()


def encrypted(archive: bytes) -> bytes:
    """Set the flag of an encrypted member in every header of an archive."""
    content = bytearray(archive)
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = content.find(mark)
        while start >= 0:
            content[start + offset] |= 1
            start = content.find(mark, start + 4)
    return bytes(content)


def compressed_by(archive: bytes, method: int) -> bytes:
    content = bytearray(archive)
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = content.find(mark)
        while start >= 0:
            content[start + offset] = method
            start = content.find(mark, start + 4)
    return bytes(content)


FILES = {
    "a member that is no array.npz": npz(notes_dot_txt=b"hello"),
    "a member called vectors.npz": npz(embeddings=b"\x00" * 24),
    "an empty member.npz": npz(part=b""),
    "an encrypted archive.npz": encrypted(npz()),
    "an unknown compression.npz": compressed_by(npz(), 99),
    "a wrong compression.npz": compressed_by(npz(), 8),
    "a deep note.parquet": parquet(DEEP.encode()),
    "a note that is no JSON.parquet": parquet(b"{"),
    "deep lists.csv": f'id,vector\na,"{DEEP}"\n'.encode(),
    "lists of texts.csv": b'id,vector\na,"[""x""]"\n',
    "lists of lists.csv": b'id,vector\na,"[[1.0]]"\n',
    "objects.csv": b'id,vector\na,"{}"\n',
}


@pytest.mark.parametrize("name", FILES)
def test_unexpected_file_of_embeddings_gives_one_message(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(FILES[name])
    with pytest.raises(BadData, match="cannot be read as embeddings") as error:
        read_vectors(path)
    assert name in str(error.value) and len(str(error.value)) < 500 and str(error.value).count("\n") == 0


@pytest.mark.parametrize(
    "schema", [True, float(ScoreResult.schema), str(ScoreResult.schema), [ScoreResult.schema], None]
)
def test_schema_is_an_integer(schema):
    record = {**consistent().to_json(), "schema": schema}
    with pytest.raises(OtherSchema, match=r"its schema is .* reads ScoreResult of schema"):
        ScoreResult.from_json(sealed(record))


def test_package_with_a_taken_name_does_not_break_the_list(monkeypatch, capsys):
    point = EntryPoint("probe", "a_package:Probe", "cardiobench.protocols")
    known = plugins.entry_points
    monkeypatch.setattr(
        plugins, "entry_points", lambda group: {"probe": point} if group == "protocols" else known(group)
    )
    assert main(["list"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "protocols: " in said and "two protocols are called 'probe'" in said and "Rename or remove one" in said
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert "probe" in listed["protocols"] and len(listed["problems"]) == 1


def test_adopted_dataset_is_not_written_through_a_link(tmp_path):
    write = pytest.importorskip("cardiobench.extensions.adopt.write", reason="its extension is not here")
    other = tmp_path / "other"
    other.mkdir()
    (other / "dataset.yaml").write_text("precious")
    (tmp_path / "mine").symlink_to(other, target_is_directory=True)
    with pytest.raises(BadConfig, match=r"is a link to .*other, whose files would be replaced"):
        write.check_target(tmp_path / "mine", overwrite=True)
    dangling = tmp_path / "dangling"
    dangling.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadConfig, match="is a link"):
        write.check_target(dangling, overwrite=False)
    assert (other / "dataset.yaml").read_text() == "precious"
