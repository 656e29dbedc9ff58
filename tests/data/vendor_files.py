"""Write small ECG files in the formats of devices and archives."""

import base64
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cardiobench.data.media.types import LEADS

EIGHT = ("I", "II", "V1", "V2", "V3", "V4", "V5", "V6")


def muse_waveform(kind: str, stored: np.ndarray, fs: int = 500, leads: Sequence[str] = EIGHT, **changes: str) -> str:
    """Return a waveform of MUSE XML from stored steps (samples, leads) of 4.88 uV; `changes` replace fields of each lead."""
    made = [
        f"<Waveform><WaveformType>{kind}</WaveformType><SampleBase>{fs}</SampleBase><SampleExponent>0</SampleExponent>"
    ]
    for lead, column in zip(leads, stored.T, strict=True):
        content = column.astype("<i2").tobytes()
        fields = {
            "LeadByteCountTotal": len(content), "LeadTimeOffset": 0, "LeadSampleCountTotal": len(column),
            "LeadAmplitudeUnitsPerBit": 4.88, "LeadAmplitudeUnits": "MICROVOLTS", "LeadID": lead,
            "LeadOffsetFirstSample": 0, "FirstSampleBaseline": 0, "LeadSampleSize": 2,
            "WaveFormData": base64.b64encode(content).decode(), **changes,
        }  # fmt: skip
        made.append("<LeadData>" + "".join(f"<{key}>{value}</{key}>" for key, value in fields.items()) + "</LeadData>")
    return "".join([*made, "</Waveform>"])


def muse(*waveforms: str, prolog: str = "") -> bytes:
    """Return a MUSE XML file."""
    text = f'<?xml version="1.0" encoding="ISO-8859-1"?>{prolog}<RestingECG><MuseInfo><MuseVersion>9</MuseVersion></MuseInfo>'
    return (text + "".join(waveforms) + "</RestingECG>").encode("latin-1")


def write_muse(folder: Path, name: str, signal: np.ndarray) -> None:
    """Write eight leads of a signal in mV (samples, 12) at 100 Hz, behind an average beat."""
    stored = np.rint(signal[:, [LEADS.index(lead) for lead in EIGHT]] / 0.00488)
    content = muse(muse_waveform("Median", stored[:60], 100), muse_waveform("Rhythm", stored, 100))
    (folder / f"{name}.xml").write_bytes(content)


def aecg(stored: np.ndarray, increment: str = "0.002", unit: str = "uV", leads: Sequence[str] = LEADS) -> bytes:
    """Return an HL7 aECG with a rhythm of stored steps (samples, leads) of 2.5 units."""
    sequences = [
        f'<component><sequence><code code="TIME_ABSOLUTE"/><value><head value="20200101"/>'
        f'<increment value="{increment}" unit="s"/></value></sequence></component>'
    ]
    for lead, column in zip(leads, stored.T, strict=True):
        digits = " ".join(str(int(one)) for one in column)
        sequences.append(
            f'<component><sequence><code code="MDC_ECG_LEAD_{lead.upper()}"/><value><origin value="0" unit="{unit}"/>'
            f'<scale value="2.5" unit="{unit}"/><digits>{digits}</digits></value></sequence></component>'
        )
    series = (
        f'<series><code code="RHYTHM"/><component><sequenceSet>{"".join(sequences)}</sequenceSet></component></series>'
    )
    return (
        f'<?xml version="1.0"?><AnnotatedECG xmlns="urn:hl7-org:v3"><component>{series}</component></AnnotatedECG>'
    ).encode()


def sierra(stored: np.ndarray, fs: int = 500, leads: Sequence[str] = LEADS) -> bytes:
    """Return a Philips Sierra XML of stored steps (samples, leads) of 5 uV, not compressed."""
    values = base64.b64encode(stored.T.astype("<i2").tobytes()).decode()
    return (
        '<?xml version="1.0"?><restingecgdata><documentinfo><documenttype>SierraECG</documenttype>'
        "<documentversion>1.04</documentversion></documentinfo><dataacquisition><signalcharacteristics>"
        f"<samplingrate>{fs}</samplingrate><resolution>5</resolution><signalsigned>True</signalsigned>"
        f'</signalcharacteristics></dataacquisition><waveforms><parsedwaveforms dataencoding="Base64" '
        f'durationperchannel="{1000 * len(stored) // fs}" numberofleads="{len(leads)}" leadlabels="{" ".join(leads)}" '
        f'samplespersecond="{fs}" resolution="5">{values}</parsedwaveforms></waveforms></restingecgdata>'
    ).encode()


ISHNE_CODES = dict(zip(LEADS, range(5, 17), strict=True))


def ishne(stored: np.ndarray, fs: int = 200, leads: Sequence[str] = LEADS, declared: int | None = None) -> bytes:
    """Return an ISHNE file of stored steps (samples, leads) of 2,500 nV, without a checksum."""
    header = bytearray(522)
    header[:8] = b"ISHNE1.0"
    struct.pack_into("<iiiih", header, 10, 0, len(stored) if declared is None else declared, 522, 522, 1)
    struct.pack_into("<h", header, 156, len(leads))
    for number, lead in enumerate(leads):
        struct.pack_into("<h", header, 158 + 2 * number, ISHNE_CODES[lead])
        struct.pack_into("<h", header, 206 + 2 * number, 2500)
    struct.pack_into("<h", header, 272, fs)
    return bytes(header) + stored.astype("<i2").tobytes()


SCP_CODES = dict(zip(LEADS, (1, 2, 61, 62, 63, 64, 3, 4, 5, 6, 7, 8), strict=True))


def _crc(content: bytes) -> int:
    """Return the CRC-CCITT of SCP-ECG."""
    value = 0xFFFF
    for byte in content:
        value ^= byte << 8
        for _ in range(8):
            value = (value << 1 ^ 0x1021 if value & 0x8000 else value << 1) & 0xFFFF
    return value


def scp(stored: np.ndarray, fs: int = 500, differences: int = 0, leads: Sequence[str] = LEADS) -> bytes:
    """Return an SCP-ECG file (EN 1064) of stored steps (samples, leads) of 2,500 nV, without Huffman coding."""
    coded = stored.astype(np.int64)
    if differences:
        coded[differences:] = np.diff(stored, n=differences, axis=0)
    columns = [column.astype("<i2").tobytes() for column in coded.T]
    ranges = b"".join(struct.pack("<IIB", 1, len(stored), SCP_CODES[lead]) for lead in leads)
    bodies = {
        1: struct.pack("<BH", 255, 0) + b"\0",
        3: struct.pack("<BB", len(leads), 4 | len(leads) << 3 & 0xF8) + ranges,
        6: struct.pack("<HHBB", 2500, 1_000_000 // fs, differences, 0)
        + b"".join(struct.pack("<H", len(column)) for column in columns)
        + b"".join(columns),
    }

    def section(number: int, body: bytes) -> bytes:
        body += b"\0" * (len(body) % 2)
        head = struct.pack("<HIBB", number, len(body) + 16, 20, 20) + (b"SCPECG" if number == 0 else b"\0" * 6)
        return struct.pack("<H", _crc(head + body)) + head + body

    sections = {number: section(number, body) for number, body in bodies.items()}
    size, at, pointers = 16 + 120, 7 + 16 + 120, struct.pack("<HII", 0, 16 + 120, 7)
    for number in range(1, 12):
        length = len(sections.get(number, b""))
        pointers += struct.pack("<HII", number, length, at if length else 0)
        at += length
        size += length
    body = struct.pack("<I", size + 6) + section(0, pointers) + b"".join(sections.values())
    return struct.pack("<H", _crc(body)) + body


MFER_CODES = dict(zip(LEADS, (1, 2, 61, 62, 63, 64, 3, 4, 5, 6, 7, 8), strict=True))


def mfer(stored: np.ndarray, fs: int = 500, leads: Sequence[str] = LEADS) -> bytes:
    """Return an MFER file (ISO 22077) of stored steps (samples, leads) of 2.5 uV, one sequence per channel."""

    def tag(number: int, content: bytes) -> bytes:
        size = bytes((len(content),)) if len(content) < 128 else b"\x84" + struct.pack(">I", len(content))
        return bytes((number,)) + size + content

    definitions = [
        tag(0x40, b"MFR " + b" " * 28),
        tag(0x01, b"\1"),  # Little endian.
        tag(0x08, b"\1\0"),  # Standard 12-lead ECG.
        tag(0x0B, struct.pack("<BbH", 0, 0, fs)),  # Hz.
        tag(0x0C, struct.pack("<BbH", 0, -7, 25)),  # V.
        tag(0x04, struct.pack("<I", len(stored))),
        tag(0x05, bytes((len(leads),))),
        tag(0x06, b"\1"),
        tag(0x0A, b"\0"),  # Signed, 16 bits.
    ]
    for number, lead in enumerate(leads):
        attribute = tag(0x09, struct.pack("<H", MFER_CODES[lead]))
        definitions.append(bytes((0x3F, number, len(attribute))) + attribute)
    return b"".join([*definitions, tag(0x1E, stored.T.astype("<i2").tobytes()), b"\x80\0"])
