#!/usr/bin/env bash
# Runs the libFuzzer targets (FUZZ_TARGETS, else all) for FUZZ_SECONDS (60) each. What they find new stays in
# build-fuzz/corpus; what makes them fail in build-fuzz/failures, one file each, and the script ends with an error.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

seconds=${FUZZ_SECONDS:-60}
if [[ -n ${FUZZ_TARGETS:-} ]]; then
  read -ra targets <<<"$FUZZ_TARGETS"
else
  targets=()
  for source in fuzz/*_fuzz.cc; do
    name=${source##*/}
    targets+=("${name%_fuzz.cc}")
  done
fi
tools/build.sh fuzz "${targets[@]/%/_fuzz}"

failed=()
for name in "${targets[@]}"; do
  corpus=build-fuzz/corpus/$name failures=build-fuzz/failures/$name
  mkdir -p "$corpus" "$failures" "fuzz/corpus/$name"
  options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$failures/")
  [[ ! -f fuzz/$name.dict ]] || options+=(-dict="fuzz/$name.dict")
  say "fuzz: $name for $seconds s"
  build-fuzz/fuzz/"${name}_fuzz" "${options[@]}" "$corpus" "fuzz/corpus/$name" 2>build-fuzz/"$name.log" || failed+=("$name")
  grep -E '^(stat::|SUMMARY|==.*ERROR|Done )' build-fuzz/"$name.log" || true
done
((${#failed[@]} == 0)) || die "fuzz: failed: ${failed[*]}. The inputs are in build-fuzz/failures, the reports in build-fuzz/*.log."
