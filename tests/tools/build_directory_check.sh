#!/bin/bash
# What tools/run and its neighbours make of a build directory: one that somebody configured by hand, and one that is new.
#   build_directory_check.sh SOURCES
set -euo pipefail
sources=$(readlink -f "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
. "$sources/tools/common.sh"

failed=0
fail() { echo "$*"; failed=1; }
cache() {  # NAME:TYPE=VALUE…: the cache of CMake that these options leave
  mkdir -p "$folder/build"
  touch "$folder/build/build.ninja"
  printf '%s\n' "CMAKE_HOME_DIRECTORY:INTERNAL=$root" SWEEP_JOIN_SOURCES:BOOL=ON "$@" >"$folder/build/CMakeCache.txt"
}
wanted=("$folder/build" release "-DSWEEP_NOTES=a;b=c")

cache CMAKE_BUILD_TYPE:STRING=RelWithDebInfo "SWEEP_NOTES:STRING=a;b=c"
configured "${wanted[@]}" || fail "what has the wanted options is not used: $(other_options "${wanted[@]}")"
cache CMAKE_BUILD_TYPE:STRING=Debug "SWEEP_NOTES:STRING=a;b=c"
! configured "${wanted[@]}" || fail "a Debug build is used for a release"
message=$( (configure "${wanted[@]}") 2>&1) && fail "it is configured anew"
[[ $message == *"was configured by hand"*"  CMAKE_BUILD_TYPE=Debug, not RelWithDebInfo" ]] || fail "it says: $message"
grep -q Debug "$folder/build/CMakeCache.txt" || fail "the directory was touched"
echo other >"$folder/build/.configured"
! configured "${wanted[@]}" || fail "what a script configured with other options is used"

# What is said of a first build, which takes a while, and of one with nothing to do.
printf '%s\n' 'rule wait' '  command = sleep 1 && touch $out' 'build a: wait' 'build b: wait' >"$folder/build/build.ninja"
message=$(build "$folder/build" a b 2>&1)
[[ $message == *"for the first time: 2 steps, about 1 min on "* ]] || fail "of a first build it says: $message"
message=$(build "$folder/build" a b 2>&1)
[ -z "$message" ] || fail "of a build with nothing to do it says: $message"
exit $failed
