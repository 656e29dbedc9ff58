# CardioBench in a container: `docker build -t cardiobench .` and `docker run --rm cardiobench` runs the demo.
# For GPUs: docker build --build-arg BASE=nvidia/cuda:13.0.1-runtime-ubuntu24.04 -t cardiobench:cuda .
ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}

RUN command -v python3 >/dev/null && python3 -m venv --help >/dev/null 2>&1 \
    || (apt-get update && apt-get install --yes --no-install-recommends python3 python3-venv python3-pip && rm -rf /var/lib/apt/lists/*)

WORKDIR /opt/cardiobench
COPY . .
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --no-cache-dir -c constraints.txt ".[models,analysis,resampy,finetune,onnx]"

ENV PATH="/opt/venv/bin:${PATH}" HF_HUB_OFFLINE=1
RUN useradd --create-home runner
USER runner
WORKDIR /home/runner
CMD ["cardiobench", "demo"]
