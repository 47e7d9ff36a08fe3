#!/bin/bash
# The result of tools/pack works without the source and the build: pack_check.sh SOURCE BUILD
set -euo pipefail
source=$(readlink -f "$1") build=$(readlink -f "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "pack_check: $*"; exit 1; }

# A build without the benchmark is refused. If this one has none, sweep takes its place for what follows.
mkdir "$work/build"
ln -s "$build"/* "$work/build"
rm "$work/build/tests"
mkdir "$work/build/tests"
ln -s "$build"/tests/* "$work/build/tests"
rm -f "$work/build/tests/engine_benchmark"
! "$source/tools/pack" --built "$work/build" "$work/carried.tar.xz" 2>"$work/said" || fail "a build without the benchmark is packed"
grep -q 'the benchmark is not built: ninja -C ' "$work/said" || fail "without the benchmark: $(<"$work/said")"
built=$build
[ -e "$build/tests/engine_benchmark" ] || { built=$work/build && cp "$build/bin/sweep" "$built/tests/engine_benchmark"; }
"$source/tools/pack" --built "$built" "$work/carried.tar.xz" 2>"$work/said" || fail "tools/pack: $(<"$work/said")"
# What a compiler as old as GCC 12 makes has to run on the systems of that time: RHEL 9, Ubuntu 22.04.
newest=$(grep -oE 'GLIBC_[0-9.]+ and GLIBCXX_[0-9.]+' "$work/said") || fail "tools/pack does not say what it needs: $(<"$work/said")"
[[ $(g++ -dumpversion) -gt 12 ]] || [ "$(printf '%s\n' "$newest" 'GLIBC_2.34 and GLIBCXX_3.4.29' | sort -V | tail -n 1)" = 'GLIBC_2.34 and GLIBCXX_3.4.29' ] ||
  fail "the programs need $newest; want at most what RHEL 9 has, GLIBC_2.34 and GLIBCXX_3.4.29"
[ "$(stat -c %s "$work/carried.tar.xz")" -lt 50000000 ] || fail "the archive is larger than 50 MB"
mkdir "$work/elsewhere"
tar -C "$work/elsewhere" -xJf "$work/carried.tar.xz"
here=$work/elsewhere/sweep-carried
[ -x "$here/build/tests/engine_benchmark" ] || fail "the benchmark does not come along"

for program in "$here"/build/bin/* "$here"/build/tests/*; do
  libraries=$(env -i ldd "$program" | awk '$2 == "=>" { print $3 }')
  # Two lists that hold the same libraries: those that come along, and those that the program finds next to it. The compiler's are
  # the machine's own.
  ! grep -vE "^$here/build/bin/../lib/|^$here/build/tests/../lib/|/(ld-linux|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s)\.so)" <<<"$libraries" ||
    fail "$program takes libraries from elsewhere"
  ! grep -E "^$here.*/lib(stdc\+\+|gcc_s)\.so" <<<"$libraries" || fail "$program takes the compiler's libraries that come along"
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
# A libstdc++ that is too old: what comes along replaces it, and only then. The loader finds the old one as on such a machine, except
# that a variable names its folder.
mkdir "$work/old"
echo 'int nothing;' | gcc -shared -fPIC -Wl,-soname,libstdc++.so.6 -x c - -o "$work/old/libstdc++.so.6"
libraries_of() {
  elsewhere "$@" bash -c '. "$1/tools/common.sh" && use_carried && ldd "$1/build/bin/sweep"' bash "$here" 2>"$work/told"
}
! elsewhere env LD_LIBRARY_PATH="$work/old" "$here/build/bin/sweep" --version >"$work/told" 2>&1 || fail "the old libstdc++ is not old"
libraries_of env >"$work/libraries" || fail "with this machine's libraries: $(<"$work/told")"
! grep fallback "$work/libraries" || fail "the libraries of the fallback are used where they are not needed"
libraries_of env LD_LIBRARY_PATH="$work/old" >"$work/libraries" || fail "with an old libstdc++: $(<"$work/told")"
[ "$(grep -c "$here/build/fallback/" "$work/libraries")" = 2 ] || fail "with an old libstdc++: $(<"$work/libraries")"
mv "$here/build/fallback" "$work/fallback"
status=0
libraries_of env LD_LIBRARY_PATH="$work/old" >"$work/libraries" || status=$?
{ [ $status = 1 ] && grep -q 'neither with the libraries of this machine' "$work/told"; } ||
  fail "with libraries that are all too old: $status, $(<"$work/told")"
mv "$work/fallback" "$here/build/fallback"

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
echo "pack_check: $(du -sm "$here" | cut -f 1) MB unpacked, $(($(stat -c %s "$work/carried.tar.xz") / 1000000)) MB packed"
