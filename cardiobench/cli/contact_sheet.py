"""Write the contact sheet of remarked recordings for `audit` and `doctor`."""

from pathlib import Path

from cardiobench.core.console import Console
from cardiobench.core.errors import BadConfig
from cardiobench.data.dataset import OpenDataset
from cardiobench.data.examine import Examined
from cardiobench.data.media.types import Clip, Ecg, FrameSampling


def check_sheet(path: Path | None) -> None:
    """Refuse a name of the sheet that does not end in .png, before any recording is read.

    Raises:
        BadConfig: The name has another ending.
    """
    if path is not None and path.suffix.lower() != ".png":
        raise BadConfig(f"--sheet {path}: the sheet is a PNG. Give a name that ends in .png.")


def write_sheet(source: OpenDataset, examined: Examined, path: Path, console: Console) -> None:
    """Draw the remarked recordings of a dataset, and print the path or that there are none.

    Raises:
        MissingExtra: The package matplotlib is not installed.
    """
    from cardiobench.report.plots.contact_sheet import write_contact_sheet

    places = {name: place for place, name in enumerate(source.frame["id"])}

    def read(name: str) -> Clip | Ecg:
        return source.recording(places[name], FrameSampling(count=None))

    drawn = write_contact_sheet(examined, read, path, f"Remarked recordings of {source.spec.name}")
    shown = f"{drawn} of {len(examined.remarks)} remarked recordings, worst first" if drawn else ""
    console.print(f"wrote {path}: {shown}" if shown else f"{path} was not written: no recording is remarked")
