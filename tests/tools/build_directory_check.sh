#!/bin/bash
# What tools/run and its neighbours make of a build directory: one that somebody configured by hand, and one that is new; and of systems.
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
cache CMAKE_BUILD_TYPE:STRING=RelWithDebInfo "SWEEP_NOTES:STRING=a;b=c" CMAKE_CXX_COMPILER:FILEPATH=/usr/bin/g++-12
configured "${wanted[@]}" -DCMAKE_CXX_COMPILER=g++-12 || fail "a compiler whose path CMake has found is another one"
! configured "${wanted[@]}" -DCMAKE_CXX_COMPILER=++-12 || fail "a compiler is known by the end of its name"
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

# A build that fails is not a wrong command line, which is 2. However long its messages are, the last says where all of them are.
printf '%s\n' 'rule fail' '  command = seq $count; false' 'build c: fail' '  count = 1' 'build d: fail' '  count = 99999' >"$folder/build/build.ninja"
for target in c d none; do
  rm -f "$folder/build/.ninja_log"  # a first build
  status=0
  # In a script of its own, where each step that fails is the end.
  message=$(bash -euo pipefail -c '. "$1/tools/common.sh" && build "$2" "$3"' bash "$sources" "$folder/build" $target 2>&1) || status=$?
  [[ $status = 1 && $message == *"the build failed; all of its output"* ]] || fail "of a build that fails: $status, $message"
done

# The revision is that of these sources, not of a repository around them.
git -C "$folder" init -q
git -C "$folder" -c user.name=a -c user.email=a@b commit -q --allow-empty -m one
mkdir "$folder/unpacked"
for source in unpacked:unknown .:"$(git -C "$folder" describe --always --abbrev=12)"; do
  cmake -DSOURCE="$folder/${source%%:*}" -DOUTPUT="$folder/revision.h" -P "$sources/tools/cmake/write_revision.cmake"
  grep -q "\"${source#*:}\"" "$folder/revision.h" || fail "the revision is wrong: $(tail -n 3 "$folder/revision.h")"
done

# In a container, as many compilers as its share of the machine allows.
cgroup=$folder
unset SWEEP_BUILD_JOBS
nproc() { echo 32; }
jobs_are() { [ "$(build_jobs)" = "$1" ] || fail "$2: $(build_jobs) compilers at once, not $1"; }
echo 'max 100000' >"$folder/cpu.max"
printf '%s\n' 'anon 1000000000' 'file 3000000000' 'shmem 0' >"$folder/memory.stat"
echo 3500000000 >"$folder/memory.max"
jobs_are 1 "with 3.5 GB, 1 GB of them used"
echo max >"$folder/memory.max"
echo '100000 100000' >"$folder/cpu.max"
jobs_are 1 "with the time of one core"
SWEEP_BUILD_JOBS=7 jobs_are 7 "with SWEEP_BUILD_JOBS=7"
unset -f nproc

# Command lines that say two things, or half of one.
while IFS='|' read -r call wanted; do
  status=0
  # shellcheck disable=SC2086
  message=$("$sources"/tools/$call 2>&1 </dev/null) || status=$?
  [[ $status = 2 && $message == *"$wanted"* ]] || fail "tools/$call: $status, $message"
done <<'END'
release --built build --no-cuda packages|--no-cuda says how to build
release --built /not/there packages|--built: got "/not/there", want a directory
pack --built /dev packed.tar.xz|--built: got "/dev", want a directory
pack --built|--built needs a directory
test --cuda --minutes|--minutes needs a number
test --minutes 08|go with --cuda
test -R a --quik|ctest has no option --quik
test --cuda --bnech|GoogleTest has no option --bnech
bench --rounds 3 --writer|--writer has to come first
format --check core|only names the files
END

# A mistyped file, and a repository that git does not read, are not "nothing found".
touch "$folder/build/compile_commands.json"
for call in "core/engne/x.cpp" ""; do
  status=0
  # shellcheck disable=SC2086
  message=$(GIT_DIR=$folder "$sources/tools/tidy" --build "$folder/build" $call) || status=$?
  [[ $status = 2 && $message != *findings* ]] || fail "tools/tidy $call: $status, $message"
done

# Packages by the names of the system, and the message if there is nothing to build with.
os_release=$folder/os-release
on() { printf 'ID=%s\nVERSION_ID="%s"\nPRETTY_NAME="%s %s"\n' "$1" "$2" "$1" "$2" >"$os_release"; }
package_manager() { echo "$manager"; }
manager=apt-get
[[ " $(packages run | tr '\n' ' ')" == *" g++ "*" libjs-vega "* ]] || fail "of Debian's packages: $(packages run)"
for system in 'debian 12' 'debian 13' 'ubuntu 24.04' 'linuxmint 22'; do
  # shellcheck disable=SC2086
  on $system
  message=$( (check_system run) 2>&1) || fail "$system is refused: $message"
done
for system in 'debian 11' 'ubuntu 22.04'; do
  # shellcheck disable=SC2086
  on $system
  message=$( (check_system run) 2>&1) && fail "$system is not refused"
  [[ $message == *"$system cannot build sweep: CMake 3.25, GCC 12 and libspng are needed"* ]] || fail "of $system it says: $message"
done

# Without root and sudo, only what the build needs is an error.
installs() {
  (
    id() { echo 1000; }
    package_manager() { echo apt-get; }
    command() { false; }
    check_system() { :; }
    missing_packages() { printf '%s\n' "$@" | grep -xE "$absent"; }
    install_packages run
  ) 2>&1
}
absent='curl|libjs-vega'
message=$(installs) || fail "without $absent: $message"
[[ $message == *"going on without curl libjs-vega, which only root can install"* ]] || fail "without $absent: $message"
absent='curl|ninja-build'
message=$(installs) && fail "without $absent it goes on: $message"
[[ $message == *"neither root nor sudo. Ask for: apt-get install curl ninja-build"* ]] || fail "without $absent: $message"

manager=dnf
[[ " $(packages run | tr '\n' ' ')" == *" gcc-c++ "* ]] || fail "of Fedora's packages: $(packages run)"
! packages run | grep -xE 'g\+\+|libjs-vega|-' || fail "names of Debian are among Fedora's"
manager=''
on alpine 3.20
message=$( (command() { false; } && check_system run) 2>&1) && fail "a system without compilers is not refused"
[[ $message == *"alpine 3.20 has neither apt-get nor dnf, and no cmake. Needed are what these Debian packages hold: "*"cmake "* ]] || fail "it says: $message"
exit $failed
