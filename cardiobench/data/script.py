"""The loading script of a dataset, for `datasets` 3: the builder itself under the repository's name.

Versions from 4 on refuse a folder that holds `<name>/<name>.py`, so the script goes to a revision of its own, never
beside the Parquet shards.
"""

import shutil
from pathlib import Path

from cardiobench.data import catalog


def write_script(name: str, out: Path) -> Path:
    """Write `out/cardiobench/<name>/<name>.py`, which `datasets` 3 runs with `trust_remote_code=True`.

    It needs cardiobench installed and the raw folder as `data_dir`: it reads the release just as every other way does.
    """
    folder = out / "cardiobench" / name
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / f"{name}.py"
    shutil.copyfile(catalog.dataset_folder(name) / "builder.py", script)
    return script
