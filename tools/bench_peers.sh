#!/usr/bin/env bash
# bench_peers.sh: the other engines that `ferry bench --peers` compares with, from PyPI, in build/peers-venv.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

venv=build/peers-venv
if [[ ! -x $venv/bin/python ]]; then
  say "peers: making $venv"
  python3 -m venv "$venv" || die "python3 -m venv failed: the Debian package python3-venv has it"
fi
say "peers: installing what bench/peers/requirements.txt lists (about 6 GB: the wheel of PyTorch brings CUDA along)"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r bench/peers/requirements.txt
"$venv/bin/pip" list --disable-pip-version-check 2>/dev/null | grep -iE '^(onnxruntime|openvino|ncnn|pnnx|torch) '
