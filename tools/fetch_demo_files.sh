#!/usr/bin/env bash
# fetch_demo_files.sh FOLDER: leaves yolov5n.pt and bus.jpg, as Ultralytics published them, in FOLDER. What is there with
# the right digest stays; the rest is fetched, checked by SHA-256, and renamed into place only when it is right.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

folder=$1
weights_sha256=4f180cf23ba0717ada0badd6c685026d73d48f184d00fc159c2641284b2ac0a3
picture_sha256=33b198a1d2839bb9ac4c65d61f9e852196793cae9a0781360859425f6022b69c
github=https://github.com/ultralytics/yolov5

is_right() { [[ -f $1 ]] && sha256sum "$1" | grep -q "^$2 "; }

# fetch NAME SHA256 URL…: the first URL whose content has the digest.
fetch() {
  local name=$1 digest=$2 url why=
  shift 2
  if is_right "$folder/$name" "$digest"; then return 0; fi
  for url in "$@"; do
    say "demo: fetching $url"
    local part=$folder/$name.part
    if ! curl --fail --location --silent --show-error --proto '=https' --connect-timeout 15 --max-time 300 \
      --retry 3 --retry-delay 2 --output "$part" "$url"; then
      why+="  $url could not be fetched"$'\n'
    elif ! is_right "$part" "$digest"; then
      why+="  $url is another file than expected ($(stat -c %s "$part") bytes)"$'\n'
    else
      mv "$part" "$folder/$name"
      return 0
    fi
    rm -f "$part"
  done
  printf '%s' "$why" >&2
  return 1
}

mkdir -p "$folder"
ok=1
fetch yolov5n.pt $weights_sha256 "$github/releases/download/v6.1/yolov5n.pt" \
  "$github/releases/download/v7.0/yolov5n.pt" || ok=0
fetch bus.jpg $picture_sha256 \
  https://raw.githubusercontent.com/ultralytics/yolov5/5081342f04fb287fc2e5f2b5a4e06752b7937b1c/data/images/bus.jpg || ok=0

((ok)) || die "" "The demo needs two files that are neither here nor to be fetched. On a machine with a network, get" \
  "  $github/releases/download/v6.1/yolov5n.pt   (SHA-256 $weights_sha256)" \
  "  $github/blob/v7.0/data/images/bus.jpg   (SHA-256 $picture_sha256)" \
  "and put them here:" "  $folder/yolov5n.pt" "  $folder/bus.jpg" "" \
  "Or run ferry on files of your own:" "  build/ferry detect --weights YOUR.pt --source YOUR.jpg"
