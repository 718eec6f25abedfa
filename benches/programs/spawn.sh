#!/bin/sh
# Starts a thousand processes that do nothing.
set -eu
count=0
while [ $count -lt 1000 ]; do
    /bin/true
    count=$((count + 1))
done
