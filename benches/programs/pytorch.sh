#!/bin/sh
# Trains a small convolutional network on one processor: `pytorch.sh [STEPS]`, in the Python that PYTHON names.
set -eu
python=${PYTHON:-python3}
result=$("$python" "$(dirname "$0")/../host/one.py" cnn --warm-up 1 --steps "${1:-10}")
echo "$result" | "$python" -c 'import json, sys; print(json.load(sys.stdin)["value"])'
