"""Check what a submission may contain: additions to every part of a result and to its files are refused, and not sent."""

import json
from dataclasses import replace

import pytest

from cardiobench.core.errors import BadData
from cardiobench.core.foreign import read_parquet
from cardiobench.data import catalog
from cardiobench.hub.outgoing import public_result
from cardiobench.hub.results_dataset import parquet, records
from cardiobench.hub.submission import COLUMNS, KEYS, LONGEST_TEXT, ROWS, additions, answers_format, without_additions
from cardiobench.results.predictions_file import OF_REFITS
from cardiobench.results.record import CHECKSUM, checksum
from cardiobench.results.score_result import ScoreResult
from tests.hub.results import result

TEXT = "Jane Roe, born 1950, " * 100


def added(part, key, value):
    return lambda one: replace(one, **{part: {**getattr(one, part), key: value}})


ADDITIONS = {
    "a key of the model": added("model", "labels", "sick;well"),
    "a key of the dataset": added("dataset", "patients", 3),
    "a key of the stamp": added("stamp", "note", "see hospital"),
    "a long option": added("options", "note", TEXT),
    "megabytes of options": added("options", "grid", [f"a value of an option {n}" for n in range(200_000)]),
    "many options": added("options", "grid", list(range(3_000))),
    "long preprocessing": added("model", "preprocessing", {"note": TEXT}),
    "a long warning": lambda one: replace(one, warnings=(TEXT,)),
    "many warnings": lambda one: replace(one, warnings=tuple(map(str, range(500)))),
    "a long sentence": lambda one: replace(one, verdict=replace(one.verdict, sentence=TEXT)),
    "a long reason": lambda one: replace(one, skipped_groups={"sex=F": TEXT}),
    "a long key": lambda one: replace(one, skipped_groups={TEXT: "no"}),
    "a token": added("options", "note", "hf_" + "a" * 30),
}


def test_usual_result_has_no_additions():
    assert not list(additions(result())) and without_additions(result()) == result()


@pytest.mark.parametrize("case", ADDITIONS)
def test_addition_is_refused_and_removed(case):
    one = ADDITIONS[case](result())
    assert all(len(reason) < 200 for reason in additions(one)) and list(additions(one))
    assert not list(additions(public_result(one))), "push removes it"


def places(value, path=()):
    """Yield the path of every text and every mapping of a JSON tree."""
    if isinstance(value, dict):
        yield path, "mapping"
        for key, entry in value.items():
            yield from places(entry, (*path, key))
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from places(entry, (*path, number))
    elif isinstance(value, str) and path != (CHECKSUM,):
        yield path, "text"


def test_liar_finds_no_place_for_a_long_text():
    """Write a long text into every text and under a new key of every mapping: it is unreadable, or an addition."""
    original = result().to_json()
    tried = 0
    for path, kind in places(original):
        record = json.loads(json.dumps(original))
        holder = record
        for name in path[:-1]:
            holder = holder[name]
        if kind == "text":
            holder[path[-1]] = TEXT
        else:
            (holder[path[-1]] if path else record)["more"] = TEXT
        record[CHECKSUM] = checksum(record)
        tried += 1
        try:
            found = list(additions(ScoreResult.from_json(record)))
        except BadData:
            continue
        assert found, path
    assert tried > 60


def test_every_column_and_metadata_key_of_the_rows_is_checked():
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.Table.from_pylist(records(result(), "bob"), schema=pq.read_schema(io.BytesIO(parquet([]))))
    assert read_parquet(parquet(records(result(), "bob")), ROWS).column_names == list(COLUMNS)

    def refused(table):
        sink = io.BytesIO()
        pq.write_table(table, sink)
        with pytest.raises(BadData, match=r"column|metadata"):
            read_parquet(sink.getvalue(), ROWS)

    for place, name in enumerate(COLUMNS):
        refused(rows.set_column(place, name, pa.array([["a list"]] * len(rows))))
        refused(rows.set_column(place, name, pa.array([b"bytes"] * len(rows))))
        refused(rows.append_column(name, rows[name]))
        if COLUMNS[name] == "string" and name not in ("result", "warnings"):
            refused(rows.set_column(place, name, pa.array(["x" * (LONGEST_TEXT + 1)] * len(rows))))
    for key in ("token", "pandas2", "ARROW:schema2", "a", ""):
        refused(rows.replace_schema_metadata({key: "hf_" + "a" * 30}))


@pytest.mark.parametrize("name", ["camus/ef", "tmed2/as", "ptb_xl/super"])
def test_answers_have_ids_and_predictions_alone(name):
    task = catalog.task(name)
    columns = answers_format(task).columns
    answers = {*task.rules.answer_columns(task), *task.rules.optional_columns(task)}
    assert set(columns) == {"id", *answers, *(f"{OF_REFITS}{one}" for one in answers)}
    assert all(bool(column.each) == one.startswith(OF_REFITS) for one, column in columns.items())
    assert not {"y_true", "patient_id"} & set(columns) and answers_format(task).others is None


def mappings(value):
    """Yield every mapping of a JSON tree."""
    if isinstance(value, dict):
        yield value
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from mappings(entry)


def test_listed_keys_are_those_of_results_of_runs(root):
    """Check the recorded results of all protocols; stamps have further keys, which stay on the machine."""
    recorded = [json.loads(path.read_text("utf-8")) for path in root.glob("tests/acceptance/records/*.json")]
    found = [one for record in recorded for one in mappings(record) if "verdict" in one and "model" in one]
    assert len(found) > 20
    for part in ("model", "dataset"):
        assert {key for one in found for key in one[part]} <= set(KEYS[part])
