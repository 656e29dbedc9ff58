"""Test reading of vectors from external files, with one error message that contains counts."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cardiobench.core.errors import BadConfig, BadData, CardioBenchError, MissingData
from cardiobench.embeddings.vector_files import read_vectors, write_vectors

IDS = ["007", "a,b", "e\u0301 x", "z"]


def vectors(rows=4, dim=3, dtype=np.float32):
    return np.random.default_rng(1).normal(size=(rows, dim)).astype(dtype)


def wide(ids=IDS, values=None, **more):
    values = vectors(len(ids)) if values is None else values
    numbers = {f"v{number}": values[:, number] for number in range(values.shape[1])}
    return pd.DataFrame({"id": ids, **more, **numbers})


def as_dict(table):
    return {name: table.part_vectors(place) for place, name in enumerate(table.places)}


@pytest.mark.parametrize("suffix", [".parquet", ".npz", ".csv"])
def test_vectors_survive_a_round_trip_bitwise(tmp_path, suffix):
    rows, offsets = vectors(6), np.array([0, 1, 3, 4, 6])
    rows[0, :] = [1 / 3, 1e-38, -0.0]
    path = write_vectors(tmp_path / f"x{suffix}", [("camus", name) for name in IDS], offsets, rows, {"pooling": "mean"})
    table = read_vectors(path)
    assert table.problems == () and table.datasets == ("camus",) and table.of("tmed2").keys == ()
    assert table.pooling == ("mean" if suffix != ".csv" else "")
    for place, name in enumerate(IDS):
        assert as_dict(table.of("camus"))[name].tobytes() == rows[offsets[place] : offsets[place + 1]].tobytes()


def test_digest_does_not_depend_on_format_and_order(tmp_path):
    frame = wide()
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.iloc[::-1].to_csv(tmp_path / "b.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "c.parquet")
    pd.DataFrame({"id": IDS, "emb": list(vectors())}).to_parquet(tmp_path / "d.parquet")
    np.savez(tmp_path / "e.npz", id=np.array(IDS), x=vectors())
    pd.DataFrame({"id": IDS, "vector": [json.dumps(row.tolist()) for row in vectors()]}).to_csv(tmp_path / "f.csv")
    digests = {read_vectors(path).digest for path in sorted(tmp_path.iterdir())} | {
        read_vectors(frame).digest,
        read_vectors(frame.set_index("id")).digest,
    }
    assert len(digests) == 1
    changed = vectors()
    changed[2, 1] = np.nextafter(changed[2, 1], np.float32(9))
    assert read_vectors(wide(values=changed)).digest not in digests
    assert read_vectors(wide(ids=["7", *IDS[1:]])).digest not in digests


def test_half_precision_stays_and_double_becomes_single(tmp_path):
    for dtype, kept in ((np.float16, np.float16), (np.float64, np.float32), (np.int8, np.float32)):
        np.savez(tmp_path / "x.npz", id=np.array(IDS), vectors=vectors(dtype=np.float64).astype(dtype))
        assert read_vectors(tmp_path / "x.npz").vectors.dtype == kept


def test_several_rows_are_parts_in_their_order():
    rows = vectors(5)
    table = read_vectors(wide(["b", "b", "a", "a", "a"], rows))
    assert np.array_equal(as_dict(table)["a"], rows[2:]) and np.array_equal(as_dict(table)["b"], rows[:2])
    numbered = read_vectors(wide(["a", "b", "a", "b", "a"], rows, part=[2, 1, 0, 0, 1]))
    assert np.array_equal(as_dict(numbered)["a"], rows[[2, 4, 0]]) and np.array_equal(
        as_dict(numbered)["b"], rows[[3, 1]]
    )
    same = np.ones((2, 3), dtype=np.float32)
    assert read_vectors(wide(["a", "a"], same, part=[0, 1])).problems == ()


def test_npz_with_parts_for_each_id(tmp_path):
    block = vectors(8).reshape(4, 2, 3)
    np.savez(tmp_path / "x.npz", id=np.array(IDS), tokens=block, pooling="mean_l2")
    table = read_vectors(tmp_path / "x.npz")
    assert table.pooling == "mean_l2" and np.array_equal(as_dict(table)["007"], block[0])


def test_other_columns_are_ignored():
    assert read_vectors(wide(label1=[1, 0, 1, 0], fold=[1, 2, 3, 4], sex="F")).dim == 3
    named = wide().rename(columns=lambda name: name.replace("v", "dim_"))
    assert read_vectors(named.assign(age1=60)).digest == read_vectors(wide()).digest


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (wide(["a", "b", "a", "c"]), "1 id repeated in rows that are not consecutive: a"),
        (wide(["a", "a", "b", "c"], vectors()[[0, 0, 1, 2]]), "1 id repeated with the same vector: a"),
        (wide(["a", "a", "b", "b"], part=[0, 0, 0, 1]), "1 id repeated with the same part: a"),
        (wide(["a", "a", "b", "b"], part=[0, 2, 1, 2]), "2 ids without parts between 0 and their last: a, b"),
        (wide(["a", None, "", "b"]), "2 of 4 rows have no id"),
        (wide(part=[0.5, 0, 0, 0]), "`part` contains values other than whole numbers"),
        (
            wide(values=np.where(np.eye(4, 3), np.nan, vectors())),
            "3 of 4 vectors, of 3 ids, contain NaN, infinity or no values",
        ),
        (wide(values=vectors(dtype=np.float64) * 1e39), "4 of 4 vectors, of 4 ids, contain NaN"),
        (
            pd.DataFrame({"id": IDS, "v": [[1.0], [1.0, 2.0], [1.0], None]}),
            "the vectors have 3 widths: 2 rows of 1 numbers, 1 rows of 2 numbers, 1 rows of 0 numbers",
        ),
        (pd.DataFrame({"id": IDS, "v": [[], [], [], []]}, dtype=object), "no numbers"),
    ],
)
def test_problems_are_counted(frame, said):
    table = read_vectors(frame)
    with pytest.raises(BadData, match="the data frame: ") as error:
        table.check()
    assert said in str(error.value) and "\n" not in str(error.value)


def test_all_problems_are_in_one_message():
    frame = wide(["a", "b", "a", "x"], np.where(np.eye(4, 3), np.nan, vectors()))
    with pytest.raises(BadData) as error:
        read_vectors(frame).check(["a", "b", "c", "d"], ["a", "b", "c", "d", "e"], of="camus")
    for said in (
        "1 id repeated",
        "3 of 4 vectors",
        "2 of the 4 recordings of camus are missing: c, d",
        "1 of 3 ids",
    ):
        assert said in str(error.value)


def test_decimal_commas_with_semicolons(tmp_path):
    wide().to_csv(tmp_path / "x.csv", index=False, sep=";", decimal=",")
    assert read_vectors(tmp_path / "x.csv").digest == read_vectors(wide()).digest


def test_python_objects_are_refused_with_advice(tmp_path):
    np.savez(tmp_path / "x.npz", id=np.array(IDS, dtype=object), vectors=vectors())
    with pytest.raises(BadData, match=r"array 'id' contains Python objects, .*dtype=str"):
        read_vectors(tmp_path / "x.npz")
    with (tmp_path / "x.npz").open("wb") as file:
        np.save(file, vectors())
    with pytest.raises(BadData, match=r"not an NPZ archive\. Write it with numpy\.savez"):
        read_vectors(tmp_path / "x.npz")


@pytest.mark.parametrize("header", ["id,id,v0,v1", "id,v0,v0,v1"])
def test_repeated_column_is_refused(tmp_path, header):
    (tmp_path / "x.csv").write_text(f"{header}\n1,2,3,4\n")
    with pytest.raises(BadData, match=r"column (id|v0) occurs twice"):
        read_vectors(tmp_path / "x.csv")


def test_invalid_files_are_refused(tmp_path):
    files = {
        "a.parquet": b"PAR1 not at all",
        "b.npz": b"PK\x03\x04 broken",
        "c.csv": b"id,v0,v1\n1,2\n",
        "d.csv": b"id,v0\nx,text\n",
        "e.csv": "id,v0\n\xff,1\n".encode("latin-1"),
        "f.csv": b"",
        "g.csv": b"id,v0\n",
        "h.csv": b"name,v0\nx,1\n",
        "i.csv": b"id,a,b\nx,1,2\n",
        "j.csv": b'id,vector\nx,"[1, 2"\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    np.savez(tmp_path / "k.npz", id=np.array([{"a": 1}], dtype=object), vectors=vectors(1))
    np.savez(tmp_path / "l.npz", id=np.array(["a"]), vectors=vectors(2))
    np.savez(tmp_path / "m.npz", id=np.array(["a"]), x=vectors(1), y=vectors(1))
    pq.write_table(pa.table({"id": ["a"], "v0": ["text"]}), tmp_path / "n.parquet")
    pq.write_table(pa.table({"id": ["a"], "v": [[["text"]]]}), tmp_path / "o.parquet")
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(CardioBenchError) as error:
            read_vectors(path)
        assert path.name in str(error.value), path.name
    with pytest.raises(MissingData):
        read_vectors(tmp_path / "absent.csv")
    (tmp_path / "x.pt").write_bytes(b"x")
    with pytest.raises(BadConfig, match=r"\.parquet, \.npz, \.csv"):
        read_vectors(tmp_path / "x.pt")
