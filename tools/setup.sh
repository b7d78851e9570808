#!/usr/bin/env bash
# setup.sh GROUP…: installs the packages of these groups of packages.txt that are missing. Quick when none is.
#
# FERRY_NO_SETUP=1 leaves the machine alone: for other systems, where the packages' counterparts were installed by hand.
set -euo pipefail
cd "$(dirname "$0")/.."
source tools/lib.sh

[[ ${FERRY_NO_SETUP:-} != 1 ]] || exit 0

groups=" ${*:-build} "
wanted=()
while read -r group package _; do
  [[ -n $group && $group != \#* && $groups == *" $group "* ]] && wanted+=("$package")
done < tools/packages.txt

system=$(. /etc/os-release 2>/dev/null && echo "${PRETTY_NAME:-unknown}" || echo unknown)
release=$(. /etc/os-release 2>/dev/null && echo "${ID:-}:${VERSION_ID:-}" || true)
[[ $release == debian:12 ]] || die \
  "ferry's set-up knows Debian 12; this is $system." \
  "Install what corresponds to these Debian packages, then run make again with FERRY_NO_SETUP=1 in the environment:" \
  "  ${wanted[*]}"

missing=()
installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${wanted[@]}" 2>/dev/null || true)
for package in "${wanted[@]}"; do
  grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || die \
    "These Debian packages are missing, and installing them takes root or sudo:" "  ${missing[*]}" \
    "Ask an administrator for" "  apt-get install --no-install-recommends ${missing[*]}" "and run make again."
  as_root=(sudo)
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600)

say "set-up: installing ${#missing[@]} Debian packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# apt-get waits for dpkg's lock by itself, but not for the lock on the package lists.
update() {
  local tries=0
  until "${apt[@]}" update >"$log" 2>&1; do
    if ! grep -q 'Could not get lock' "$log" || ((++tries > 120)); then return 1; fi
    ((tries > 1)) || say "set-up: another program holds apt's lock; waiting"
    sleep 5
  done
}
if ! update; then
  cat "$log" >&2
  say "set-up: the package lists could not be brought up to date; trying with those that are there" >&2
fi
if ! "${apt[@]}" install --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
  tail -n 30 "$log" >&2
  die "set-up: apt-get could not install the packages above; its words are the last lines."
fi
