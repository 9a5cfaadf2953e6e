#!/usr/bin/env bash
# Builds two commits side by side and compares the SHA-256 of the audio of 20 requests, most of them
# to the embedded voice (compare_builds_requests.py). The exit status is 1 where any differs.
#
#     tools/compare_builds.sh [REV_A [REV_B]] [--folder DIR] [--venv-a DIR] [--venv-b DIR]
#
# REV_A is d6468d1 and REV_B is HEAD unless they are given; changes that are not committed are not
# built. --folder keeps the builds in DIR and reuses those that are there; without it they are made
# in a temporary folder. --venv-a and --venv-b name existing environments in place of a build.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

usage() {
  sed -n '/^#     tools/s/^#     /usage: /p' "$0" >&2
  exit 2
}

revisions=()
venv_a= venv_b= folder=
while [ $# -gt 0 ]; do
  case $1 in
    --folder | --venv-a | --venv-b)
      [ $# -ge 2 ] || usage
      declare "$(echo "${1#--}" | tr - _)=$2"
      shift
      ;;
    -*) usage ;;
    *) revisions+=("$1") ;;
  esac
  shift
done
[ ${#revisions[@]} -le 2 ] || usage

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
folder=${folder:-$scratch}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

# Installs a commit into an environment of its own and prints the environment's folder.
build() {
  local commit place
  commit=$(git -C "$root" rev-parse --verify --quiet "$1^{commit}") || {
    echo "compare_builds.sh: there is no commit $1" >&2
    return 1
  }
  place=$folder/$commit
  if [ ! -e "$place/built" ]; then
    echo "building $1 ($commit)" >&2
    rm -rf "$place"
    mkdir -p "$place/source"
    git -C "$root" archive "$commit" | tar -x -C "$place/source"
    "${PYTHON:-python3}" -m venv "$place/venv"
    SKBUILD_BUILD_DIR="$place/build" "$place/venv/bin/python" -m pip install --quiet \
      "$place/source" >&2
    touch "$place/built"
  fi
  echo "$place/venv"
}

# Writes "NAME HASH" for each request. The cache of quantized weights is not shared by the builds.
speak() {
  HOME="$scratch/home-$2" XDG_CACHE_HOME="$scratch/cache-$2" "$1/bin/python" -I \
    "$root/tools/compare_builds_requests.py" "$scratch/checkpoint" >"$scratch/$2"
}

# The checkpoint with synthetic weights that both sides load, by the tools of this checkout or, with
# commits older than these, by the package.
write_checkpoint() {
  local call="write_checkpoint('$scratch/checkpoint')"
  (cd "$root" && "$venv_b/bin/python" -c "from tools.synthetic import write_checkpoint; $call") \
    2>"$scratch/errors" ||
    "$venv_a/bin/python" -I -c "from nightingale.synthetic import write_checkpoint; $call" || {
    cat "$scratch/errors" >&2
    return 1
  }
}

venv_a=${venv_a:-$(build "${revisions[0]:-d6468d1}")}
venv_b=${venv_b:-$(build "${revisions[1]:-HEAD}")}
write_checkpoint
speak "$venv_a" a
speak "$venv_b" b

different=0
while read -r name hash_a name_b hash_b; do
  verdict=same
  if [ "$name" != "$name_b" ] || [ "$hash_a" != "$hash_b" ]; then
    verdict=DIFFERENT
    different=$((different + 1))
  fi
  printf '%-32s %.16s %.16s %s\n' "$name" "$hash_a" "$hash_b" "$verdict"
done < <(paste -d ' ' "$scratch/a" "$scratch/b")
echo "$(wc -l <"$scratch/a") requests, $different different"
[ "$different" -eq 0 ]
