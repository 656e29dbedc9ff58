#!/usr/bin/env bash
# Measure and check CardioBench on a GPU. Each part prints one line of JSON as soon as it is done; at most 8 minutes on one H100.
#
#     benchmarks/gpu/run.sh [FOLDER]     also writes the lines to FOLDER (default: benchmarks/gpu/results)
#
# PARTS="demo tests" runs only these. DEVICE=cpu runs the same parts, smaller, on the CPU. Wheels beside this script are put on the path first (wheels.sh).
set -uo pipefail
cd "$(dirname "$0")/../.."
DEVICE=${DEVICE:-cuda}
PYTHON=${PYTHON:-python3}
folder=${1:-benchmarks/gpu/results}
mkdir -p "$folder"
export PYTHONPATH=$PWD:$PWD/benchmarks HF_HUB_OFFLINE=1 CARDIOBENCH_TEST_DEVICE=$DEVICE
# On processors with AMX, oneDNN computes bfloat16 convolutions of few channels per group wrongly (PyTorch 2.11 and 2.15):
# the small networks of the tests have such. Networks of full size have more channels.
[ "$DEVICE" != cpu ] || export ONEDNN_MAX_CPU_ISA=${ONEDNN_MAX_CPU_ISA:-AVX512_CORE_BF16}
if ls benchmarks/gpu/wheels/*.whl >/dev/null 2>&1; then
    site=$(mktemp -d)
    trap 'rm -rf "$site"' EXIT
    "$PYTHON" -m pip install --quiet --no-index --no-deps --no-compile --target "$site" benchmarks/gpu/wheels/*.whl || exit 1
    export PYTHONPATH=$PYTHONPATH:$site
fi
lines=$folder/$(date -u +%Y-%m-%d)-$DEVICE.jsonl
failed=0
for part in ${PARTS:-demo tests throughput training}; do
    timeout --kill-after 10 "${SECONDS_PER_PART:-110}" "$PYTHON" -m benchmarks.gpu.parts "$part" --device "$DEVICE" | tee -a "$lines"
    code=${PIPESTATUS[0]}
    if [ "$code" -ne 0 ]; then
        failed=1
        echo "{\"part\": \"$part\", \"failed\": \"exit code $code\"}" | tee -a "$lines"
    fi
done
exit $failed
