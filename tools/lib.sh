# What the scripts here share; they source it after `cd` to the root of the repository.
# shellcheck shell=bash

say() { printf '%s\n' "$*"; }

# Says why, and ends the script.
die() {
  printf '%s\n' "$@" >&2
  exit 1
}

# How many compilers may run at once: one a processor, and 1.5 GiB of free memory for each.
jobs_here() {
  local processors memory_kib limit
  processors=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || true)
  if [[ $limit =~ ^[0-9]+$ ]] && ((limit / 1024 < memory_kib)); then memory_kib=$((limit / 1024)); fi
  local by_memory=$((memory_kib / 1572864))
  ((by_memory >= 1)) || by_memory=1
  ((processors < by_memory)) && say "$processors" || say "$by_memory"
}
