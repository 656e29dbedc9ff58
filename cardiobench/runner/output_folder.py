"""Check the output folder and write the file that repeats a run."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cardiobench.core.config import RunConfig, absolute, to_yaml
from cardiobench.core.errors import UnwritableOutput
from cardiobench.core.io import sha256_of_json, write_atomic, write_text
from cardiobench.protocols.base import BaseProtocol


def write_settings(config: RunConfig, protocols: Sequence[BaseProtocol]) -> Path:
    """Write `<output>/runs/<digest of the settings>/run.yaml` to repeat a run.

    Options are stored as read by the protocols; a grid given as a file is stored by content.
    """
    read = {one.name: one.get_params() for one in protocols}
    options = {name: {option: read[name][option] for option in chosen} for name, chosen in config.options.items()}
    text = to_yaml(absolute(replace(config, options=options)))
    return write_text(text, config.output_dir / "runs" / sha256_of_json(text)[:12] / "run.yaml")


def check_writable(folder: Path) -> None:
    """Reject an output folder that is not writable before starting work."""
    try:
        str(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise UnwritableOutput(f"{str(folder)!r} is not UTF-8. Choose another folder with --output-dir.") from None
    try:
        mark = write_atomic(folder / ".write-test", lambda path: path.write_bytes(b"test"))
        mark.unlink(missing_ok=True)  # Another process may check at the same time.
    except UnwritableOutput as error:
        raise type(error)(f"{error.args[0]} Choose another folder with --output-dir.") from None
