#!/usr/bin/env bash
# Detects in a real picture with real weights, and says where the annotated picture is. Takes both files from FERRY_DATA
# (../shared/data) when they are there, else fetches them (fetch_demo_files.sh).
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

data=${FERRY_DATA:-../shared/data}
weights=$data/weights/yolov5n_v61_coco80.pt
picture=$data/images/bus.jpg
if [[ ! -f $weights || ! -f $picture ]]; then
  cache=${XDG_CACHE_HOME:-$HOME/.cache}/ferry
  tools/fetch_demo_files.sh "$cache"
  weights=$cache/yolov5n.pt
  picture=$cache/bus.jpg
fi

say "demo: YOLOv5n ($weights) looks at $picture"
build/ferry detect --weights "$weights" --source "$picture" --project runs --name demo --exist-ok
say ""
say "The annotated picture is $PWD/runs/demo/bus.jpg"
