"""Synthetic twin of HMC-QU: two apical views of each patient, with infarcted segments in one sheet per view."""

from collections.abc import Sequence
from pathlib import Path
from typing import cast
from xml.sax.saxutils import escape
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np

from cardiobench.data.media.write import avi
from cardiobench.data.phantom.echo import EchoTruth, echo_clip
from cardiobench.data.phantom.echo_cohort import draw_heart, draw_quality, draw_sex
from cardiobench.data.phantom.heart import View
from cardiobench.data.phantom.pictures import letterbox
from cardiobench.data.phantom.splits import choose, published_split
from cardiobench.data.twin_manifest import GENERATED

_FPS, _FRAMES, _SIZE, _HEIGHT, _WIDTH = 25.0, 40, 128, 128, 160
_SEGMENTS = tuple(f"SEG{number}" for number in range(1, 8))
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def write(out: Path, patients: int, seed: int = 0) -> None:
    """Write a twin of `patients` patients of the published split to `HMC-QU/`.

    File names start with the patient, as in the release. A view is infarcted if any of its segments is marked `MI`; a
    part of its wall then does not move. The masks of the release are omitted.
    """
    rng = np.random.default_rng([seed, 0])
    table = choose(published_split(Path(__file__).parent, "recordings"), patients, rng)
    root = out / "HMC-QU"
    sheets = {view: [("ECHO", *_SEGMENTS)] for view in ("A2C", "A4C")}
    for _, rows in table.groupby("patient_id", sort=False):
        heart = draw_heart(rng, float(np.clip(rng.normal(57, 7), 40, 75)), draw_sex(rng))
        rate = float(rng.uniform(60, 95))
        for row in rows.itertuples():
            quality = draw_quality(rng, poor=0.1)
            view = cast(View, row.id.rpartition("_")[2])
            infarct = row.diseased
            truth = EchoTruth(
                **heart, view=view, heart_rate=rate, image_quality=quality, seed=int(rng.integers(2**31)),
                akinetic=infarct,
            )  # fmt: skip
            clip = letterbox(echo_clip(truth, frames=_FRAMES, size=_SIZE, fps=_FPS), _HEIGHT, _WIDTH)
            path = root / view / f"{row.patient_id}_{view[2]}{view[1]}_1.avi"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(avi(clip, _FPS, comment=GENERATED))
            sick = set(rng.choice(len(_SEGMENTS), size=rng.integers(1, 4), replace=False)) if infarct else set()
            marks = ["MI" if segment in sick else "non-MI" for segment in range(len(_SEGMENTS))]
            sheets[view].append((path.stem, *marks))
    for sheet, cells in sheets.items():
        write_xlsx(root / f"{sheet}.xlsx", cells)


def write_xlsx(path: Path, rows: Sequence[Sequence[str]]) -> None:
    """Write a sheet of text cells in the format ECMA-376 (Office Open XML); equal cells give equal bytes."""
    cells = "".join(
        "<row>" + "".join(f'<c t="inlineStr"><is><t>{escape(cell)}</t></is></c>' for cell in row) + "</row>"
        for row in rows
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_TYPE}.worksheet+xml"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{cells}</sheetData></worksheet>',
    }
    with ZipFile(path, "w") as archive:
        for name, text in parts.items():
            # The date is fixed, so that the file depends only on its cells.
            archive.writestr(ZipInfo(name, (1980, 1, 1, 0, 0, 0)), _HEAD + text, ZIP_DEFLATED)
