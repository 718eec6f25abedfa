#!/bin/sh
# Fills a list of two million, a hash of 300,000, and a text.
set -eu
perl -e 'my @list = (1 .. 2000000); my %hash = map { $_ => 1 } (1 .. 300000); print length("x" x 50000000), "\n"'
