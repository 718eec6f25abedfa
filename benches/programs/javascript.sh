#!/bin/sh
# Writes a source tree of some thousand functions, bundles and minifies it, and runs both: `javascript.sh [MODULES]`.
set -eu
sources=$(dirname "$0")/javascript
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
node "$sources/write.js" "$folder/source" "${1:-250}"
node "$sources/bundle.js" "$folder/source" "$folder/bundle.js"
result=$(node "$folder/bundle.js")
[ "$result" = "$(node "$folder/source/index.js")" ]
echo "$result"
cat "$folder/bundle.js" "$folder/bundle.js.map" | cksum
