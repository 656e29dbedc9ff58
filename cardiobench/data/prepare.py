"""Building of the Parquet shards, card, prompts and eval.yaml for `load_dataset("cardiobench/<name>")`."""

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from cardiobench.core.errors import BadData, BadMedia, CardioBenchError, first_n
from cardiobench.core.front_matter import join_card, split_card
from cardiobench.core.io import remove_orphans, sha256_of_file, temporary_folder, unwritable, write_json
from cardiobench.data import catalog
from cardiobench.data.eval_file import eval_file
from cardiobench.data.prepared_labels import label_path, write_labels
from cardiobench.data.prepared_note import LEFT_OUT, NOTE, Preparation
from cardiobench.data.prompts import prompt_files
from cardiobench.data.rows import links_out
from cardiobench.data.twin_card import INFOS, twin_card, twin_infos, twin_sentence
from cardiobench.data.twin_manifest import find_manifest

if TYPE_CHECKING:
    import pandas as pd

    from cardiobench.data.builder import CardioBuilder

SHARD = "500MB"


def prepare(
    name: str, data_dir: Path | None, out: Path, *, allow_missing: bool = False, num_proc: int | None = None
) -> Path:
    """Build a dataset as a folder for the unmodified `datasets` library.

    Args:
        name: Name of the dataset.
        data_dir: Raw folder; None for CARDIOBENCH_DATA.
        out: Folder in which `cardiobench/<name>/` is written; an existing folder is replaced when the new one is
            complete.
        allow_missing: Whether to accept an incomplete copy; missing and unreadable data are recorded.
        num_proc: Number of processes that read recordings.

    Returns:
        The folder. `load_dataset("cardiobench/<name>")` reads it from the working directory `out`.

    Raises:
        MissingData: The raw folder is missing or incomplete.
        BadData: The tables violate the dataset's rules, or the folder of a twin contains other files.
        BadMedia: Recordings cannot be read; the message has their number, names and the first reason.
        UnwritableOutput: `out` cannot be written to, or its disk is full.
    """
    from datasets.exceptions import DatasetGenerationError

    builder = catalog.builder(name)
    _check_twin(builder.find_raw(data_dir))
    try:
        target = out / "cardiobench" / name
        remove_orphans(target.parent)
        with temporary_folder(target) as work:
            folder = work / "folder"
            (folder / "data").mkdir(parents=True)
            for part in builder.SPEC.configs or ("default",):
                build = builder(
                    config_name=part,
                    data_dir=None if data_dir is None else str(data_dir),
                    allow_missing=allow_missing,
                    skip_unreadable=True,
                    cache_dir=str(work),
                )
                built = work / part
                build.download_and_prepare(built, file_format="parquet", max_shard_size=SHARD, num_proc=num_proc)
                _take_shards(build, built, folder / "data")
            _finish(build, folder, allow_missing=allow_missing)
            if target.exists():
                target.rename(work / "old")
            folder.rename(target)
    except (OSError, DatasetGenerationError) as error:
        raise _explained(f"{name} in {out}", error) from None
    return target


def _explained(what: str, error: Exception) -> Exception:
    """Return the error of the disk or of this package behind an error of `datasets`; the error itself if there is none."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, CardioBenchError):
            return cause
        if isinstance(cause, OSError):
            return unwritable(what, cause)
        cause = cause.__cause__ or cause.__context__
    return error


def _check_twin(raw: Path | None) -> None:
    """Refuse a folder that is marked as a synthetic twin but contains other files, which would count as generated."""
    manifest = None if raw is None else find_manifest(raw)
    foreign = manifest.foreign_files() if manifest else []
    if foreign:
        raise BadData(
            f"{raw} is marked as a synthetic twin, but {len(foreign)} of its files were changed: {first_n(foreign)}. "
            "Keep a release and its twin in separate folders; `cardiobench phantom` generates the twin again."
        )


def companion_files(name: str) -> dict[str, bytes]:
    """Return the files that accompany a dataset's data as path -> content: split ids, card, eval.yaml, prompts."""
    folder, spec = catalog.dataset_folder(name), catalog.spec(name)
    files = {f"splits/{path.name}": path for path in sorted((folder / "splits").glob("*.csv"))}
    if (card := folder / "README.md").is_file():
        files["README.md"] = card
    contents = {part: path.read_bytes() for part, path in files.items()}
    contents["eval.yaml"] = eval_file(spec).encode()
    prompts = {"version": None}
    for task in spec.tasks:
        for file in prompt_files(task):
            content = json.loads(file.read_text(encoding="utf-8"))
            if task.target in content:
                prompts |= {task.target: content[task.target], "version": content["version"]}
                break
    if len(prompts) > 1:
        contents["prompts.json"] = (json.dumps(prompts, indent=2) + "\n").encode()
    return contents


def _take_shards(build: "CardioBuilder", built: Path, data: Path) -> None:
    """Move the shards of a configuration to the names used in the card."""
    prefix = f"{build.config.name}-" if build.SPEC.configs else ""
    for split in build.info.splits:
        shards = sorted(built.glob(f"{build.SPEC.name}-{split}*.parquet"))
        for number, shard in enumerate(shards):
            shard.rename(data / f"{prefix}{split}-{number:05d}-of-{len(shards):05d}.parquet")


def _finish(build: "CardioBuilder", folder: Path, *, allow_missing: bool) -> None:
    """Compare the written rows with the tables, and add the note and the accompanying files."""
    import pyarrow.parquet as pq

    spec, rows = build.SPEC, build._rows
    shards = sorted((folder / "data").glob("*.parquet"))
    here = {name for shard in shards for name in pq.read_table(shard, columns=["id"])["id"].to_pylist()}
    damaged = rows.frame[~rows.frame["id"].isin(here)]
    if len(damaged) and not allow_missing:
        raise _unreadable(build, damaged)
    left_out = rows.listed[~rows.listed["id"].isin(here)]
    if len(left_out):
        left_out.to_parquet(folder / LEFT_OUT, index=False)
    for file, data in companion_files(spec.name).items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_bytes(data)
    card = folder / "README.md"
    content = hashlib.sha256("".join([rows.digest, *rows.frame["fingerprint"]]).encode()).hexdigest()[:16]
    text = card_of_shards(card.read_text(encoding="utf-8"), folder, content)
    if rows.twin:
        sentence = twin_sentence(spec.title, folder)
        (folder / INFOS).write_text(twin_infos(text, sentence), encoding="utf-8")
        text = twin_card(text, sentence)
    card.write_text(text, encoding="utf-8")
    note = Preparation(
        name=spec.name,
        version=spec.version,
        digest=rows.digest,
        twin=rows.twin,
        missing=rows.missing,
        unreadable=tuple(damaged["id"]),
        absent=dict(rows.absent),
        linked=() if build._raw is None else links_out(build._raw),
        shards={shard.name: sha256_of_file(shard) for shard in shards},
        labels={path.name: sha256_of_file(path) for path in _write_labels(build, folder, here)},
        left_out=sha256_of_file(folder / LEFT_OUT) if len(left_out) else "",
    )
    write_json(note.to_json(), folder / NOTE)


def _write_labels(build: "CardioBuilder", folder: Path, here: set[str]) -> list[Path]:
    """Write the masks and landmarks of the available recordings in the order of the shards; returns the files."""
    frame = build._rows.frame
    paths: list[Path] = []
    order = {split: number for number, split in enumerate(build.SPEC.splits)}
    for task in build.SPEC.dense_tasks:
        rows = frame[frame["id"].isin(here) & frame[task.target].notna()]
        rows = rows.sort_values("split", key=lambda splits: splits.map(order), kind="stable")
        paths.append(label_path(folder, task))
        write_labels(build.dense_labels(build._raw, task, rows), paths[-1], build._raw)
    return paths


def _unreadable(build: "CardioBuilder", damaged: "pd.DataFrame") -> BadMedia:
    try:
        build.stored_media(damaged.iloc[0].to_dict())
        reason = "it can be read now"
    except BadMedia as error:
        reason = str(error)
    return BadMedia(
        f"{build.SPEC.title}: {len(damaged)} of {len(build._rows.frame)} recordings cannot be read: {first_n(damaged['id'])}. "
        f"The first: {reason}\n  Or continue without them with --allow-missing (every score then states its coverage)."
    )


def card_of_shards(card: str, folder: Path, content: str) -> str:
    """Return the card of a copy without its empty splits and configurations, and with a digest of its content.

    `datasets` refuses a name without files. Its cache identifies a local folder only by the configurations in the card;
    without the digest it would return the rows of another copy, or rows with outdated labels.

    Args:
        card: Text of the dataset's README.md.
        folder: Prepared folder with the shards in `data/`.
        content: Digest of rows and recordings.
    """
    front, body = split_card(card)
    facts = yaml.safe_load(front)
    for config in facts["configs"]:
        config["description"] = f"rows and recordings {content}"
        for entry in config["data_files"]:
            patterns = [entry["path"]] if isinstance(entry["path"], str) else entry["path"]
            entry["path"] = [pattern for pattern in patterns if any(folder.glob(pattern))]
        config["data_files"] = [entry for entry in config["data_files"] if entry["path"]]
        for entry in config["data_files"]:
            if len(entry["path"]) == 1:
                (entry["path"],) = entry["path"]
    facts["configs"] = [config for config in facts["configs"] if config["data_files"]]
    return join_card(facts, body)
