#!/bin/bash
# What tools/pack makes works where there is neither the source nor what was built: pack_check.sh SOURCE BUILD
set -euo pipefail
source=$(readlink -f "$1") build=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "pack_check: $*"; exit 1; }

"$source/tools/pack" --built "$build" "$work/carried.tar.gz"
[ "$(stat -c %s "$work/carried.tar.gz")" -lt 60000000 ] || fail "the archive is larger than 60 MB"
mkdir "$work/elsewhere"
tar -C "$work/elsewhere" -xzf "$work/carried.tar.gz"
here=$work/elsewhere/sweep-carried

for program in "$here"/build/bin/* "$here"/build/tests/*; do
  libraries=$(env -i ldd "$program" | awk '$2 == "=>" { print $3 }')
  # Two lists that hold the same libraries: those that come along, and those that the program finds beside it.
  ! grep -vE "^$here/build/bin/../lib/|^$here/build/tests/../lib/|/(ld-linux|lib(c|m|dl|rt|pthread|resolv)\.so)" <<<"$libraries" ||
    fail "$program takes libraries from elsewhere"
done

# The source, what was built and the data sets of this machine are hidden, where the system lets a user do that.
elsewhere() {
  if unshare -rm true 2>/dev/null; then
    env -i PATH=/usr/bin:/bin unshare -rm bash -c 'for d in "$1" "$2" /usr/share/datasets /usr/local/share/datasets; do [ ! -d "$d" ] || mount -t tmpfs none "$d"; done; shift 2; cd /; "$@"' \
      bash "$source" "$build" "$@"
  else
    (cd / && env -i PATH=/usr/bin:/bin "$@")
  fi
}

[ -d "$here/data/fashion-mnist" ] || fail "Fashion-MNIST does not come along"
devices=$(elsewhere "$here/build/bin/sweep" devices)
if grep -q '^cuda .*cannot be used' <<<"$devices"; then
  elsewhere "$here/test" --cuda 2>"$work/told" || fail "test --cuda without a GPU: $(<"$work/told")"
  grep -q 'SKIPPED: ' "$work/told" || fail "test --cuda does not say that it skips: $(<"$work/told")"
  status=0
  elsewhere "$here/bench" --cuda 2>"$work/told" || status=$?
  { [ $status = 77 ] && grep -q 'SKIPPED' "$work/told"; } || fail "bench --cuda without a GPU: $status, $(<"$work/told")"
else
  elsewhere "$here/test" --cuda || fail "test --cuda"
fi
# The programs of tests find their data, and the one they start: one that trains nothing has to pass as where it was built.
grep -q 'engine_tests.*SWEEP_TEST_DEVICE=cuda' "$here/build/gpu-tests.txt" || fail "engine_tests are not listed"
elsewhere env SWEEP_TEST_DATA="$here/tests/data" "$here/build/tests/engine_tests" --gtest_filter='All/LayerReference.*' --gtest_brief=1 >"$work/told" ||
  fail "engine_tests elsewhere: $(<"$work/told")"
! grep -q 'PASSED.* 0 tests' "$work/told" || fail "engine_tests have no LayerReference"
# Trainings against PyTorch's run on the data that come along, and fail without them. SWEEP_DATA may name a folder without them.
trainings() {
  elsewhere "$@" bash -c '. "$1/tools/common.sh" && use_carried && "$1/build/tests/engine_tests" --gtest_filter="ShortTraining.*"' \
    bash "$here" >"$work/told" 2>&1
}
for place in "" "$work"; do
  trainings env SWEEP_DATA="$place" || fail "trainings elsewhere: $(<"$work/told")"
  ! grep -q 'SKIPPED\|PASSED.* 0 tests' "$work/told" || fail "trainings elsewhere do not run: $(<"$work/told")"
done
if unshare -rm true 2>/dev/null; then
  mv "$here/data" "$work/data"
  ! trainings env || fail "trainings without their data should fail: $(<"$work/told")"
  grep -q 'data set "fashion-mnist" not found' "$work/told" || fail "trainings without their data: $(<"$work/told")"
  mv "$work/data" "$here/data"
fi
elsewhere "$here/bench" --cuda --device cpu --quick --no-peers --only "CNN, 10000" --results "$work/result" 2>"$work/told" >&2 ||
  fail "bench --cuda --device cpu: $(<"$work/told")"
grep -q '"CNN, 10000"' "$work/result.json" || fail "bench wrote no result"
elsewhere "$here/tools/test" 2>"$work/told" && fail "tools/test without --cuda should say that it cannot build"
grep -q 'nothing here to build from' "$work/told" || fail "tools/test: $(<"$work/told")"
echo "pack_check: $(du -sm "$here" | cut -f 1) MB unpacked, $(($(stat -c %s "$work/carried.tar.gz") / 1000000)) MB packed"
