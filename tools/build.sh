#!/usr/bin/env bash
# build.sh PRESET TARGET…: configures and builds targets of a preset of CMakePresets.json.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

preset=$1
shift
folder=build
[[ $preset == release ]] || folder=build-$preset

# A folder that was configured somewhere else (the checkout moved) or half configured is of no use.
fresh=()
if [[ -f $folder/CMakeCache.txt ]]; then
  grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt" && [[ -f $folder/build.ninja ]] || fresh=(--fresh)
fi

say "build: $* ($preset, in $folder)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cmake "${fresh[@]}" --preset "$preset" >"$log" 2>&1; then
  cat "$log" >&2
  die "build: CMake could not configure $folder."
fi
cmake --build "$folder" -j "$(jobs_here)" -t "$@"
