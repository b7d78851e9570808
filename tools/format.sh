#!/usr/bin/env bash
# format.sh [--check]: formats the C++ sources by .clang-format, or says which are not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
[[ ${1:-} != --check ]] || mode=(--dry-run --Werror --ferror-limit=1)

find include src fuzz bench examples tests \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) -print0 |
  sort -z | xargs -0 -n 16 -P "$(nproc)" clang-format "${mode[@]}"
