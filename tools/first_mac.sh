#!/usr/bin/env bash
# Everything that only a Mac can tell, in one command. Writes a folder to attach to an issue:
#     tools/first_mac.sh [--report FOLDER] [--build FOLDER] [--short]
# --report  where the report is written; first-mac-report without
# --build   takes the C++ tests of this build, and the nightingale package that is installed
# --short   a sample of the tests, no benchmarks
# A part that fails does not stop the others; the last lines say which failed. Where there is no
# Xcode, as on Linux, what needs it is skipped by name and kernels run in the emulator.
set -uo pipefail
cd "$(dirname "$0")/.."

report=first-mac-report build= short=
while [ $# -gt 0 ]; do
  case "$1" in
    --report) report=$2 && shift 2 ;;
    --build) build=$2 && shift 2 ;;
    --short) short=yes && shift ;;
    *)
      sed -n '2,8s/^# \{0,1\}//p' "$0" >&2
      exit 2
      ;;
  esac
done
mkdir -p "$report"
report=$(cd "$report" && pwd)
: >"$report/summary.txt"
device=cpu
[ "$(uname)" != Darwin ] || device=gpu

say() { echo "$*" | tee -a "$report/summary.txt"; }

# part NAME COMMAND...: its output goes to NAME.log.
part() {
  local name=$1 started=$SECONDS
  shift
  if "$@" >"$report/$name.log" 2>&1; then
    say "passed   $name [$((SECONDS - started)) s]"
  else
    say "FAILED   $name [$((SECONDS - started)) s]"
    named_faults "$report/$name.log"
  fi
}

# Which kernels and tests a log complains about.
named_faults() {
  grep -hE 'does not compile|cannot run the kernel|^TEST CASE:|^(FAILED|ERROR) ' "$1" |
    sort -u | head -n 40 | sed 's/^/         /' | tee -a "$report/summary.txt"
}

# xcode_part NAME COMMAND...: skipped where there is no Xcode.
xcode_part() {
  if xcrun --find metal >/dev/null 2>&1; then
    part "$@"
  else
    say "skipped  $1: needs Xcode"
  fi
}

full_part() {
  if [ -z "$short" ]; then part "$@"; else say "skipped  $1: --short"; fi
}

machine() {
  uname -a
  python3 --version
  if [ "$(uname)" = Darwin ]; then
    sw_vers
    system_profiler SPHardwareDataType SPDisplaysDataType
    xcodebuild -version
  fi
}

build_package() {
  python3 -m venv "$report/venv"
  "$report/venv/bin/pip" install --quiet ".[test]"
}

build_tests() {
  cmake -S . -B "$report/build" -G Ninja -DNIGHTINGALE_TESTS=ON \
    -DMLX_DIR="$(python3 -m mlx --cmake-dir)/share/cmake/MLX" &&
    cmake --build "$report/build"
}

gpu_description() {
  python3 -c 'import mlx.core as mx; print(mx.device_info())'
}

kernel_tests() { "$tests" --source-file="*/backends/gpu/*,*/decode_test.cpp" ${1:+"$1"}; }

validated_kernel_tests() { MTL_SHADER_VALIDATION=1 MTL_DEBUG_LAYER=1 kernel_tests; }

benchmarks() {
  python3 -m tools.synthetic "$report/small" &&
    for name in t3 s3gen speak; do
      python3 -m "bench.$name" --device "$device" --folder "$report/small" || return 1
    done
}

speak() {
  python3 -m nightingale say "Hello from this machine." --device "$device" -o "$report/hello.wav"
}

# MLX of the version that the package is built with, then libnightingale, for the simulator.
ios_simulator() {
  local version work="$report/ios"
  version=$(sed -n "s/.*\"mlx==\([0-9.]*\); sys_platform == 'darwin'\".*/\1/p" pyproject.toml |
    head -n 1)
  rm -rf "$work" && mkdir -p "$work/shim" &&
    git clone --quiet --depth 1 --branch "v$version" https://github.com/ml-explore/mlx.git \
      "$work/mlx" || return 1
  # MLX's build compiles its Metal kernels for macOS whatever the target is (ml-explore/mlx#3915).
  cat >"$work/shim/xcrun" <<'END'
#!/bin/bash
words=("${@/#macosx/iphonesimulator}")
exec /usr/bin/xcrun "${words[@]/#-mmacosx-version-min/-mios-simulator-version-min}"
END
  chmod +x "$work/shim/xcrun"
  local target=(-G Ninja -DCMAKE_SYSTEM_NAME=iOS -DCMAKE_OSX_SYSROOT=iphonesimulator
    -DCMAKE_OSX_ARCHITECTURES=arm64 -DCMAKE_OSX_DEPLOYMENT_TARGET=17.0)
  cmake -S "$work/mlx" -B "$work/mlx-build" "${target[@]}" -DCMAKE_BUILD_TYPE=Release \
    -DMLX_METAL_JIT=ON -DMLX_BUILD_GGUF=OFF -DMLX_BUILD_TESTS=OFF -DMLX_BUILD_EXAMPLES=OFF &&
    PATH="$work/shim:$PATH" cmake --build "$work/mlx-build" &&
    cmake --install "$work/mlx-build" --prefix "$work/installed" &&
    cmake -S . -B "$work/build" "${target[@]}" -DMLX_DIR="$work/installed/share/cmake/MLX" &&
    cmake --build "$work/build"
}

part machine machine
if [ -z "$build" ]; then
  part package build_package
  export PATH="$report/venv/bin:$PATH"
  part build build_tests
  build="$report/build"
fi
tests="$build/csrc/tests/nightingale_tests"
part gpu gpu_description
part kernel-texts python3 -m tools.kernel_texts dump --tests "$tests" --folder "$report/texts"
xcode_part metal-compiler python3 -m tools.kernel_texts metal --tests "$tests"
if [ -n "$short" ]; then
  part kernel-tests kernel_tests '--test-case=kernel embed_token*'
else
  part kernel-tests kernel_tests
fi
xcode_part kernel-tests-validated validated_kernel_tests
full_part model-tests python3 -m pytest -q --device "$device"
full_part benchmarks benchmarks
part speak speak
xcode_part ios-simulator ios_simulator

rm -rf "$report/venv" "$report/build" "$report/ios" "$report/small"
failed=$(grep -c '^FAILED' "$report/summary.txt")
say "$failed parts failed; attach $report"
[ "$failed" -eq 0 ]
