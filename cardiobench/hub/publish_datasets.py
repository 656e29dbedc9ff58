"""Dataset repositories: card, split ids, prompts, eval.yaml, builder; recordings only if the licence allows it."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cardiobench.core.command import command
from cardiobench.core.errors import LicenceError, MissingData, first_n
from cardiobench.data import catalog
from cardiobench.data.hub_data import data_tag
from cardiobench.data.prepare import companion_files
from cardiobench.data.prepared import find_prepared, read_left_out
from cardiobench.data.prepared_labels import LABELS
from cardiobench.data.prepared_note import NOTE, Preparation, changed_files, read_note
from cardiobench.data.spec import DatasetSpec
from cardiobench.data.twin_card import INFOS, twin_card, twin_infos, twin_sentence
from cardiobench.hub.cards import text_of
from cardiobench.hub.commit import PlanChanges, RepoOptions, Snapshot, Target
from cardiobench.hub.dataset_card import FACTS, keep_file_facts, with_file_facts, with_gate
from cardiobench.hub.dataset_index import FOLDER as INDEX
from cardiobench.hub.dataset_index import index_files
from cardiobench.hub.outgoing import Content, public_note
from cardiobench.hub.publish import Publication

SCRIPT = "script"
FRAMEWORK_REGISTERED = False
"""Set to True once the Hub supports `evaluation_framework: cardiobench`; until then its pages show an error for such an
eval.yaml."""
SCRIPT_CARD = """\
# {title}: loading script

For `datasets` 3.x with cardiobench installed: `load_dataset("{id}", revision="script", data_dir="RAW", trust_remote_code=True)`.
Later versions run no scripts; the card and how to get the data are on the main branch.
"""


def publications(
    name: str,
    namespace: str,
    *,
    private: bool = False,
    gated: bool = False,
    i_have_the_right: bool = False,
    prepared: Path | None = None,
) -> list[Publication]:
    """Return the two branches of a dataset's repository: `main`, and `script` with the builder as a loading script.

    Args:
        name: Name of the dataset.
        namespace: User or organisation.
        private: Whether to make the repository private.
        gated: Whether its owners grant access to its files manually; the card asks for name, institution and agreement.
        i_have_the_right: Whether the user has the right to share the recordings with those who will have access.
        prepared: Folder of `cardiobench prepare` with recordings to publish; None leaves published recordings
            unchanged.

    Raises:
        LicenceError: The licence does not allow publishing the recordings, or not in this form.
        MissingData: `prepared` does not contain the dataset.
    """
    if catalog.spec(name).local:
        raise LicenceError(f"{name} is your own data, which never leaves this machine: {catalog.dataset_folder(name)}.")
    spec = catalog.spec(name)
    repository = f"{namespace}/{name}"
    folder, restricted = None, False
    if prepared is not None:
        folder = find_prepared(name, prepared)
        if folder is None:
            raise MissingData(
                f"{prepared} does not contain {name}. Prepare it with: {command('prepare', name, '--out', prepared)}"
            )
        note = read_note(folder, spec)
        changed = changed_files(folder, note)
        restricted = not free_to_go(spec)
        if restricted and not ((private or gated) and i_have_the_right):
            raise LicenceError(
                f"the recordings of {spec.title} may not be published: {spec.licence}. Leave --prepared out to publish the "
                "card and the split ids; or, if your agreement lets you pass them on to those who will see the files, give "
                "--private (its members) or --gated (those whom you grant access), and --i-have-the-right. That holds for a synthetic twin too, whatever its folder says of itself."
            )
        _check_origin(folder, note, changed)
    create = RepoOptions(private, gated=gated)
    main = Target("dataset", repository)
    tag = f"v{spec.version}" if folder is None else data_tag(spec)
    return [
        Publication(main, plan_main(name, folder, restricted, gated), create, f"CardioBench {spec.version}", tag),
        Publication(
            Target("dataset", repository, SCRIPT),
            plan_script(name, repository),
            create,
            f"CardioBench {spec.version}, loading script",
        ),
    ]


def _check_origin(folder: Path, note: Preparation, changed: Sequence[str]) -> None:
    """Refuse a prepared folder that was changed, or whose recordings came through links out of the raw folder."""
    if changed:
        raise LicenceError(
            f"{folder} was not written by `cardiobench prepare`: {first_n(changed)} differ. Prepare the dataset again."
        )
    if note.linked:
        raise LicenceError(
            f"recordings or tables in {folder} came through links out of the raw folder ({first_n(note.linked)}), so "
            "their origin is unknown. Replace the links by files and prepare the dataset again."
        )


def free_to_go(spec: DatasetSpec) -> bool:
    """Return whether the recordings may be public: phantoms, and datasets whose licence allows it.

    The folder's own statements, such as being a synthetic twin, are not trusted.
    """
    return spec.generated or spec.redistributable


def plan_main(name: str, folder: Path | None, restricted: bool, gated: bool = False) -> PlanChanges:
    """Return files of the main branch.

    Args:
        name: Name of the dataset.
        folder: Prepared folder with the recordings, if given.
        restricted: Whether the recordings may only go to a private or gated repository.
        gated: Whether the repository will be gated before anything is written.
    """
    card = companion_files(name)["README.md"].decode()
    files: dict[str, Content] = dict(companion_files(name))
    if not FRAMEWORK_REGISTERED:
        del files["eval.yaml"]
    files["builder.py"] = (catalog.dataset_folder(name) / "builder.py").read_bytes()
    if folder is not None:
        for part in ("data", LABELS):
            files |= {f"{part}/{path.name}": path for path in sorted((folder / part).glob("*.parquet"))}
        note = read_note(folder, catalog.spec(name))
        published = replace(public_note(note), absent=_absent(folder, note), left_out="")
        files[NOTE] = json.dumps(published.to_json(), indent=2).encode()
        facts: tuple[str, ...] = FACTS
        if note.twin:  # `dataset_info` in the card would replace the description in `INFOS`.
            sentence = twin_sentence(catalog.spec(name).title, folder)
            files[INFOS] = twin_infos(card, sentence).encode()
            card, facts = twin_card(card, sentence), ("size_categories",)
        files["README.md"] = with_file_facts(card, files, facts).encode()

    def plan_changes(snapshot: Snapshot) -> dict[str, Content | None]:
        is_gated = gated or snapshot.gated
        if restricted and not (snapshot.private or is_gated):
            raise LicenceError(
                f"{snapshot.target} is public, and the recordings of {name} may only go to a private repository, or to one "
                "whose owners grant access by hand. Make it private on the Hub first, give --gated, or choose another --namespace."
            )
        # Recordings that were published before stay, and so does the card that describes them.
        has_data = folder is not None or any(path.startswith("data/") for path in snapshot.files)
        wanted: dict[str, Content | None] = {**files, **({} if has_data else index_files(name))}
        assert isinstance(wanted["README.md"], bytes), "a card is written here, not copied from a file"
        text = text_of(wanted["README.md"], "README.md")
        if has_data and folder is None:
            text = keep_file_facts(text, text_of(snapshot.read("README.md"), "README.md"))
        wanted["README.md"] = (with_gate(text, catalog.spec(name)) if is_gated else text).encode()
        ours = ("splits/", f"{INDEX}/", "eval.yaml", *(("data/", f"{LABELS}/") if folder is not None else ()))
        stale = [path for path in snapshot.files if path.startswith(ours) and path not in wanted]
        return {**wanted, **dict.fromkeys(stale)}

    return plan_changes


def _absent(folder: Path, note: Preparation) -> dict[str, int]:
    """Return by split how many rows of the release a copy without `LEFT_OUT` lacks; they are counted but not named."""
    left_out = read_left_out(folder)["split"]
    counts = Counter({split: int(rows) for split, rows in left_out.value_counts().items()})
    return {split: note.absent.get(split, 0) + counts[split] for split in {**note.absent, **counts}}


def plan_script(name: str, repository: str) -> PlanChanges:
    """Return files of the branch for `datasets` 3: the builder under the repository's name, and how to call it."""
    card = SCRIPT_CARD.format(title=catalog.spec(name).title, id=repository)
    script = (catalog.dataset_folder(name) / "builder.py").read_bytes()
    return lambda snapshot: {f"{name}.py": script, "README.md": card.encode()}
