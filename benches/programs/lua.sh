#!/bin/sh
# Fills a table of three million numbers, and a text.
set -eu
lua5.4 -e 'local t = {} for i = 1, 3000000 do t[i] = i * 2 end print(#string.rep("x", 50000000) + #t)'
