"""EchoNet-Dynamic: 10,030 apical four-chamber videos with their ejection fraction (Stanford)."""

from collections.abc import Iterator
from pathlib import Path

from cardiobench.data import VIEWS, CardioBuilder, DatasetSpec, PromptGrid, Task
from cardiobench.data.tables import choice, number, read_columns, text

SPLIT = {"TRAIN": "train", "VAL": "validation", "TEST": "test"}

SPEC = DatasetSpec(
    name="echonet_dynamic",
    title="EchoNet-Dynamic",
    version="1.0.0",
    modality="echo",
    media="video",
    licence="Stanford University research use agreement; no redistribution",
    access="https://echonet.github.io/dynamic/",
    redistributable=False,
    detect_files=("FileList.csv", "EchoNet-Dynamic/FileList.csv"),
    expected={"train": 7465, "validation": 1288, "test": 1277},
    columns={"key_frame": "int64", "fps": "float64", "n_frames": "int64", "esv": "float64", "edv": "float64"},
    tasks=(
        Task(
            "echonet_dynamic/ef",
            "regression",
            "ef",
            ("mae",),
            unit="%",
            label_range=(0, 100),
            prompt_grid=PromptGrid(0, 100, 1),
            description="ejection fraction, a video at a time; one video a patient",
        ),
        Task(
            "echonet_dynamic/view",
            "multiclass",
            "view",
            ("f1_macro",),
            VIEWS,
            description="echo view, a video at a time; all are A4C",
        ),
    ),
    citation="Ouyang et al., Video-based AI for beat-to-beat assessment of cardiac function, Nature 580:252 (2020)",
)

COLUMNS = {
    "FileName": text(),
    "EF": number(0, 100, unit="%"),
    "ESV": number(0, optional=True),
    "EDV": number(0, optional=True),
    "FPS": number(0, optional=True),
    "NumberOfFrames": number(0, optional=True),
    "Split": choice(SPLIT),
}


class EchonetDynamic(CardioBuilder):
    """Rows of `FileList.csv`, in the release's own split."""

    SPEC = SPEC

    @classmethod
    def base(cls, raw: Path) -> Path:
        """Return the folder that holds `FileList.csv` and `Videos`."""
        return raw if (raw / "FileList.csv").is_file() else raw / "EchoNet-Dynamic"

    @classmethod
    def rows(cls, raw: Path) -> Iterator[dict]:
        """Yield one row per video, which is also a patient: the release has one video of each."""
        base = cls.base(raw)
        table = read_columns(base / "FileList.csv", COLUMNS)
        videos = (base.relative_to(raw) / "Videos").as_posix()
        for row in table.itertuples():
            # the release writes the name without its ending; copies of it with one exist
            stem = row.FileName[:-4] if row.FileName[-4:].lower() == ".avi" else row.FileName
            yield {
                "id": stem,
                "patient_id": stem,
                "split": row.Split,
                "media": f"{videos}/{stem}.avi",
                "view": "A4C",
                "key_frame": 0,
                "fps": row.FPS,
                "n_frames": row.NumberOfFrames,
                "esv": row.ESV,
                "edv": row.EDV,
                "ef": row.EF,
            }
