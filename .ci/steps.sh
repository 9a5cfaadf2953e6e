# The steps that .ci/run and .ci/nightly are made of. Sourced by both, in the repository's root.
# Each is quiet unless it fails, and says how long it took.

work=$(mktemp -d)
background=()
# Python compiles what it imports; most of what pip installs never is. It must be free to keep the
# result, or every process that a test starts compiles all over again.
export PIP_NO_COMPILE=1
unset PYTHONDONTWRITEBYTECODE

clean_up() {
  local group
  for group in "${background[@]}"; do kill -- "-$group" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT

# Ends the script where the step fails; with go_on=1 it only sets `failed`.
step() {
  local name=$1 started=$SECONDS log
  log=$(mktemp -p "$work")
  shift
  # Not in a condition: there the shell would go on after a command that fails.
  set +e
  (set -e && "$@") >"$log" 2>&1
  local status=$?
  set -e
  if [ "$status" -ne 0 ]; then
    tail -n 200 "$log"
    echo "FAILED: $name"
    [ -n "${go_on:-}" ] || exit 1
    failed=1
    return 0
  fi
  echo "$name: $(tail -n 1 "$log") [$((SECONDS - started)) s]"
}

# Runs a function beside what follows, in a process group of its own, until `wait_for_background`.
in_background() {
  set -m
  (
    trap - EXIT
    renice -n 10 "$BASHPID" >/dev/null
    "$@"
  ) &
  background+=($!)
  set +m
}

wait_for_background() {
  local group
  for group in "${background[@]}"; do wait "$group"; done
  background=()
}

system_packages() {
  if ! dpkg-query --show "$@" >/dev/null; then
    apt-get update -qq
    apt-get install -y -qq "$@"
  fi
  echo "$*"
}

# The README's commands, in a fresh virtual environment.
install() {
  python3 -m venv "$work/venv"
  SKBUILD_BUILD_DIR="$work/wheel" "$work/venv/bin/pip" install --quiet ".[test]"
  echo "pip install \".[test]\" works"
}

# What some tests need and skip without.
install_extras() {
  "$work/venv/bin/pip" install --quiet "$@"
  echo "$*"
}

source_tree() {
  mkdir -p "$work/tree"
  git ls-files -z | tar -cf - --null -T - | tar -xf - -C "$work/tree"
}

# From another folder, so that the installed package is what is tested.
python_tests() {
  source_tree
  (cd "$work/tree" && . "$work/venv/bin/activate" && pytest "$@")
}

lint() {
  python3 -m venv "$work/lint"
  "$work/lint/bin/pip" install --quiet -r tools/lint_requirements.txt
  (. "$work/lint/bin/activate" && tools/lint.sh)
}

# MLX and BLAS as C++ programs find them, with no Python in the process. Arguments: pip's, for the
# wheels of another platform.
unpacked_wheels() {
  local mlx blas wheel
  mlx=$("$work/venv/bin/pip" freeze | grep '^mlx-cpu==')
  blas=$("$work/venv/bin/pip" freeze | grep '^scipy-openblas32==')
  "$work/venv/bin/pip" download --quiet --no-deps "$@" --dest "$work/wheels" "$mlx" "$blas"
  for wheel in "$work"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$work/unpacked"; done
  echo "$mlx $blas"
}

# cpp_configure NAME CMAKE_OPTION...: a build of the C++ tests in $work/NAME.
cpp_configure() {
  local build="$work/$1"
  shift
  cmake -S . -B "$build" -G Ninja -DNIGHTINGALE_TESTS=ON \
    -DMLX_DIR="$work/unpacked/mlx/share/cmake/MLX" \
    -DOpenBLAS_DIR="$work/unpacked/scipy_openblas32/lib/cmake/openblas" \
    -DNIGHTINGALE_KERNEL_COMPILER=clang++-19 -DNIGHTINGALE_KERNEL_CACHE="$work/kernels" "$@"
}

cpp_build() {
  cpp_configure "$@"
  cmake --build "$work/$1"
}

# cpp_run NAME: runs the tests that cpp_build built, in parts, two at a time: most cases keep one
# core busy. What each part launched is kept in $work/NAME/launched-*.tsv, and what MLX would compile
# for it on Metal in $work/NAME/texts.
cpp_run() {
  local tests="$work/$1/csrc/tests/nightingale_tests" cases part
  cases=$("$tests" --count | grep -o '[0-9]\+' | tail -n 1)
  part=$(((cases + 39) / 40))
  # MLX keeps its streams and allocator to the end of the process.
  seq 1 "$part" "$cases" | ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 \
    UBSAN_OPTIONS=print_stacktrace=1 xargs -P 2 -I{} bash -c \
    '"$0" --first={} --last=$(({} + $1 - 1)) --launched="$2/launched-{}.tsv" \
      --test-texts="$2/texts"' \
    "$tests" "$part" "$work/$1"
  echo "$cases cases passed"
}

cpp_tests() {
  cpp_build "$@"
  cpp_run "$1"
}

built_library() {
  echo "$work/wheel/csrc/nightingale/libnightingale.a"
}

# The library that pip built, with no Python in the process. Clang compiles the tests in two thirds
# of GCC's time.
plain_tests() {
  cpp_tests plain -DCMAKE_CXX_COMPILER=clang++-19 -DNIGHTINGALE_BENCH=ON \
    -DNIGHTINGALE_LIBRARY="$(built_library)"
}

# As far as it goes without a Mac, with what has been built.
first_mac() {
  (. "$work/venv/bin/activate" &&
    tools/first_mac.sh --short --build "$work/plain" --report "$work/first-mac")
}

# Of the models, as first_mac wrote them, and of the tests.
kernel_texts() {
  python3 -m tools.kernel_texts check --dumped "$work/first-mac/texts" \
    --mlx "$work/unpacked/mlx/include" --also "$work/plain/texts" --jobs 2
}

# The kernel tests on GPUs that take smaller and smaller groups.
group_limits() {
  local threads
  for threads in 512 256 128 64 32; do
    "$work/plain/csrc/tests/nightingale_tests" --threads="$threads" \
      --source-file="*/backends/gpu/*,*/decode_test.cpp,*/gpu_flow_test.cpp"
  done
  echo "the same results with groups of at most 512, 256, 128, 64 and 32 threads"
}

# broken_kernels OPTION...: whether the tests notice kernels that are broken on purpose.
broken_kernels() {
  cat "$work"/plain/launched-*.tsv >"$work/launched.tsv"
  python3 csrc/tests/mutate_kernels.py "$work/plain/csrc/tests/nightingale_tests" --jobs 2 \
    --launched "$work/launched.tsv" "$@"
}

# sanitized_tests CMAKE_OPTION...: -O1 takes half the time to compile, Clang two thirds of GCC's.
sanitized_tests() {
  cpp_tests sanitized -DNIGHTINGALE_SANITIZE=ON -DCMAKE_CXX_COMPILER=clang++-19 \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 "$@"
}
