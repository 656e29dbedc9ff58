"""Check all pinned packages for known vulnerabilities: `make audit`.

Exit code 0: no known vulnerability, or the index is unreachable (a message says so). Exit code 1: the listed packages have one.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UNREACHABLE = (
    "ConnectionError",
    "ConnectTimeout",
    "Max retries exceeded",
    "NameResolution",
    "ProxyError",
    "ReadTimeout",
)


def verdict(report: dict) -> tuple[int, str]:
    """Return the exit code and the last line of output for the JSON output of pip-audit."""
    packages = report["dependencies"]
    audited = [package for package in packages if "skip_reason" not in package]
    if not audited:
        return 0, f"audit skipped: the index that was reached knows none of the {len(packages)} packages."
    bad = [
        f"{package['name']} {package['version']}: {one['id']} (mended in {', '.join(one['fix_versions']) or 'no version'})"
        for package in audited
        for one in package["vulns"]
    ]
    summary = f"audit: {len(audited)} of {len(packages)} packages looked up, {len(bad)} known vulnerabilities."
    return int(bool(bad)), "\n".join([*bad, summary])


def audit(pins: Path) -> tuple[int, str]:
    """Return the exit code and the last lines of output for one file of pinned packages."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "audit.json"
        options = [
            "--no-deps",
            "--disable-pip",
            "--progress-spinner",
            "off",
            "--format",
            "json",
            "--output",
            str(output),
        ]
        line = [sys.executable, "-m", "pip_audit", "-r", str(pins), *options]
        run = subprocess.run(line, capture_output=True, text=True, timeout=600)
        if output.is_file():
            return verdict(json.loads(output.read_text(encoding="utf-8")))
        if any(name in run.stderr for name in UNREACHABLE):
            return 0, f"audit skipped: the index cannot be reached ({run.stderr.strip().splitlines()[-1][:200]})."
        return 1, f"pip-audit failed:\n{run.stderr}"


def main() -> int:
    codes = []
    for pins in sorted(ROOT.glob("constraints*.txt")):
        code, text = audit(pins)
        sys.stdout.write(f"{pins.name}: {text}\n")
        codes.append(code)
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
