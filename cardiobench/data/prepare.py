"""From a raw folder to what `load_dataset("cardiobench/<name>")` reads: Parquet shards, the card, prompts and eval.yaml."""

import json
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from cardiobench.data import catalog
from cardiobench.data.prompts import prompt_files
from cardiobench.errors import UnwritableOutput

NOTE = "cardiobench.json"
SHARD = "500MB"


@dataclass(frozen=True)
class Preparation:
    """What a prepared folder was made from; stands in it as `cardiobench.json`.

    Attributes:
        name: dataset.
        version: of the dataset in CardioBench.
        digest: of the rows and file sizes (`RowTable.digest`).
        twin: true for a synthetic twin.
        missing: files that the tables name and the raw folder lacked.
        absent: split -> rows of the release that the tables lacked.
    """

    name: str
    version: str
    digest: str
    twin: bool
    missing: tuple[str, ...]
    absent: dict[str, int]


def prepare(
    name: str, data_dir: Path | None, out: Path, *, allow_missing: bool = False, num_proc: int | None = None
) -> Path:
    """Build a dataset as a folder that the unmodified `datasets` library loads.

    Args:
        name: of the dataset.
        data_dir: its raw folder; None = CARDIOBENCH_DATA.
        out: `out/cardiobench/<name>/` is written; one that is there is replaced once the new one is whole.
        allow_missing: go on with an incomplete copy; what is missing is noted.
        num_proc: processes that read recordings.

    Returns:
        The folder. `load_dataset("cardiobench/<name>")` reads it from the working directory `out`.
    """
    builder = catalog.builder(name)
    try:
        (out / "cardiobench").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=out / "cardiobench") as work:
            made = builder(
                data_dir=None if data_dir is None else str(data_dir), allow_missing=allow_missing, cache_dir=work
            )
            folder = Path(work) / "folder"
            built = Path(work) / "built"
            made.download_and_prepare(built, file_format="parquet", max_shard_size=SHARD, num_proc=num_proc)
            _collect(made, built, folder)
            target = out / "cardiobench" / name
            if target.exists():
                target.rename(Path(work) / "old")
            folder.rename(target)
    except OSError as error:
        raise UnwritableOutput(f"{name} cannot be written below {out}: {error.strerror or error}") from None
    return out / "cardiobench" / name


def _collect(made, built: Path, folder: Path) -> None:
    """Shards by the names that the card gives them, and the files that travel with the data."""
    spec, rows = made.SPEC, made._rows
    (folder / "data").mkdir(parents=True)
    for split in made.info.splits:
        shards = sorted(built.glob(f"{spec.name}-{split}*.parquet"))
        for number, shard in enumerate(shards):
            shard.rename(folder / "data" / f"{split}-{number:05d}-of-{len(shards):05d}.parquet")
    own = catalog.dataset_folder(spec.name)
    for part in ("README.md", "eval.yaml"):
        if (own / part).is_file():
            shutil.copyfile(own / part, folder / part)
    if (own / "splits").is_dir():
        shutil.copytree(own / "splits", folder / "splits")
    prompts = {"version": None}
    for task in spec.tasks:
        for file in prompt_files(task):
            content = json.loads(file.read_text(encoding="utf-8"))
            if task.target in content:
                prompts |= {task.target: content[task.target], "version": content["version"]}
                break
    if len(prompts) > 1:
        (folder / "prompts.json").write_text(json.dumps(prompts, indent=2) + "\n", encoding="utf-8")
    note = Preparation(spec.name, spec.version, rows.digest, rows.twin, rows.missing, dict(rows.absent))
    (folder / NOTE).write_text(json.dumps(asdict(note), indent=2) + "\n", encoding="utf-8")
