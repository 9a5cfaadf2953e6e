#!/usr/bin/env bash
# Runs the linters: tools/lint.sh [NAME]..., all of them where none is named.
#
#   pip install -r tools/lint_requirements.txt
#   tools/lint.sh ruff clang_format
#
# A linter that fails does not keep the others from running; the exit status is 1 then.
set -uo pipefail
cd "$(dirname "$0")/.."

lint_ruff() { ruff check . && ruff format --check .; }
lint_clang_format() {
  git ls-files '*.cpp' '*.h' '*.inl' ':!metal' | xargs clang-format --dry-run -Werror
}
lint_mypy() { mypy; }
lint_options() { python3 tools/generate_options.py --check; }
lint_layers() { python3 tools/check_layers.py; }
lint_words() { python3 tools/check_words.py; }
lint_paths() { python3 tools/check_paths.py; }
lint_packaging() {
  hadolint packaging/docker/Dockerfile &&
    check-jsonschema --quiet --builtin-schema vendor.compose-spec packaging/docker/compose.yaml
}
lint_workflows() {
  check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml &&
    zizmor --offline --quiet .github/workflows
}

all="ruff clang_format mypy options layers words paths packaging workflows"
failed=""
for name in ${*:-$all}; do
  if ! declare -F "lint_$name" >/dev/null; then
    echo "unknown linter $name; there are: $all" >&2
    exit 2
  fi
  "lint_$name" || failed="$failed $name"
done
if [ -n "$failed" ]; then
  echo "FAILED:$failed"
  exit 1
fi
echo "no problems found by ${*:-$all}"
