#!/usr/bin/env bash
# Fill a folder with the wheels that a GPU node without a package index lacks, for Python 3.12 on x86-64 Linux.
#
#     benchmarks/gpu/wheels.sh [FOLDER]     download them (default: benchmarks/gpu/wheels) and print their size
#     benchmarks/gpu/wheels.sh --check      install the node's versions and these wheels into a new environment, and run
#                                           benchmarks/gpu/run.sh on the CPU without network
#
# The node has PyTorch and the packages of benchmarks/gpu/present.txt. The folder also gets the last commit, without manual and
# golden files: unpack it on the node and run `benchmarks/gpu/run.sh`. Together they have at most 60 MB.
set -euo pipefail
cd "$(dirname "$0")/../.."
MOST_MB=60
PYTHON=${PYTHON:-python3}
versions=$(mktemp)
trap 'rm -f "$versions"' EXIT

pinned() {  # The versions of the packages in a file of names.
    while read -r name; do grep -i -m 1 -E "^${name//[-_]/[-_]}==" constraints.txt; done < "$1"
}

platforms=()
for minor in 39 35 34 31 28 27 24 17 12 5; do platforms+=(--platform "manylinux_2_${minor}_x86_64"); done

download() {
    mkdir -p "$1"
    "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$1" \
        --implementation cp --abi cp312 --abi abi3 --abi none --python-version 3.12 "${platforms[@]}" \
        --platform manylinux2014_x86_64 --platform any -r "$versions"
}

if [ "${1:-}" = --check ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$versions" "$folder"' EXIT
    # What the node has, and what it lacks, in the versions for this interpreter. Its PyTorch brings its own CUDA packages.
    others=$(cut -d= -f1 constraints-gpu.txt | grep -v '^#' | paste -sd'|')
    grep -v -i -E "^(($others)==|cuda-|nvidia-|triton==)" constraints.txt > "$versions"
    grep -v '^#' constraints-gpu.txt >> "$versions"
    "$PYTHON" -m venv "$folder/venv"
    "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check -c "$versions" -r benchmarks/gpu/lacking.txt \
        -r benchmarks/gpu/present.txt
    "$folder/venv/bin/python" --version
    # A part that takes two minutes on a GPU may take a quarter of an hour on two cores.
    SECONDS_PER_PART=${SECONDS_PER_PART:-900} PYTHON="$folder/venv/bin/python" DEVICE=cpu HF_HUB_OFFLINE=1 PIP_NO_INDEX=1 benchmarks/gpu/run.sh "$folder/results"
    exit
fi

folder=${1:-benchmarks/gpu/wheels}
rm -rf "$folder"
pinned benchmarks/gpu/lacking.txt > "$versions"
download "$folder"
wheels=$(du -sm "$folder" | cut -f1)
git archive --format tar.gz -o "$folder/repository.tar.gz" HEAD . ':(exclude)docs' ':(exclude,glob)tests/golden/**/*.npz' ':(exclude)tests/samples'
together=$(du -sm "$folder" | cut -f1)
echo "wheels $wheels MB, repository $((together - wheels)) MB, together $together MB (at most $MOST_MB)"
[ "$together" -le $MOST_MB ]
