#!/bin/sh
# A selection of CPython's own tests, in one process: `cpython.sh`.
set -eu
cd "${TMPDIR:-/tmp}"
exec python3 -m test -q test_array test_bytes test_collections test_dict test_itertools \
    test_json test_list test_lzma test_marshal test_memoryview test_re test_struct test_unicode >&2
