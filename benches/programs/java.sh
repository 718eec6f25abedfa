#!/bin/sh
# Allocates and drops direct buffers of 1 to 16 MiB, within 256 MiB: `java.sh [BUFFERS]`.
set -eu
exec java -Xmx128m -XX:MaxDirectMemorySize=256m "$(dirname "$0")/java/DirectBuffers.java" "${1:-1600}"
