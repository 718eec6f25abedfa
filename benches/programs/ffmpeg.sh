#!/bin/sh
# Encodes four seconds of video.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
ffmpeg -loglevel error -f lavfi -i testsrc=duration=4:size=640x480:rate=30 -c:v mpeg4 "$folder/video.avi"
cksum <"$folder/video.avi"
