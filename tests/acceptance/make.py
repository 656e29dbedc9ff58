"""Write the committed records: `python -m tests.acceptance.make [RUN ...]`, all runs without a name.

They are what the product wrote before scoring was rewritten. Make one again only for a change of numbers that is meant,
and say so in the changelog. Edited by hand since then: the digests of the two phantoms, which are known by a version now, and
`stamp.resamples` of masks and landmarks, which says what was requested.
"""

import json
import sys
from pathlib import Path

from tests.acceptance.compare import CHANGING, machine

RECORDS = Path(__file__).parent / "records"


def main(names: list[str]) -> None:
    """Do the runs and write their records."""
    import tests.conftest  # noqa: F401 - caches of its own
    from tests.acceptance.runs import RUNS, records

    for name in names or RUNS:
        found = {path: _kept(record) for path, record in records(name).items()}
        content = {"machine": machine(), "records": found}
        text = json.dumps(content, indent=1, ensure_ascii=False)
        (RECORDS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
        sys.stdout.write(f"{name}: {len(found)} records, {len(text) // 1000} kB\n")


def _kept(record: dict) -> dict:
    """Return a record without what is never compared."""
    top = {name: value for name, value in record.items() if name not in CHANGING}
    return top | {"stamp": {name: value for name, value in record["stamp"].items() if f"stamp.{name}" not in CHANGING}}


if __name__ == "__main__":
    main(sys.argv[1:])
