"""Write the committed records: `python -m tests.acceptance.make [RUN ...]`, by default all of them.

The records contain the results before scoring was rewritten. Write a record again only after an intended change of numbers,
and mention the change in the changelog. Two kinds of fields were edited by hand: the digests of the two phantoms, which are now
identified by a version, and `stamp.resamples` of masks and landmarks, which now contains the requested number.
"""

import json
import sys
from pathlib import Path

from tests.acceptance.compare import CHANGING, machine

RECORDS = Path(__file__).parent / "records"


def main(names: list[str]) -> None:
    """Execute the runs and write their records."""
    import tests.conftest  # noqa: F401 - caches of its own
    from tests.acceptance.runs import RUNS, records

    for name in names or RUNS:
        found = {path: _kept(record) for path, record in records(name).items()}
        content = {"machine": machine(), "records": found}
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (RECORDS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        sys.stdout.write(f"{name}: {len(found)} records, {len(text) // 1000} kB\n")


def _kept(record: dict) -> dict:
    """Return a record without the fields that are never compared."""
    top = {name: value for name, value in record.items() if name not in CHANGING}
    return top | {"stamp": {name: value for name, value in record["stamp"].items() if f"stamp.{name}" not in CHANGING}}


if __name__ == "__main__":
    main(sys.argv[1:])
