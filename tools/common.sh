# shellcheck shell=bash
# What tools/run, tools/test and their neighbours share: packages, configuring and building. Sourced by bash.
#
# Nothing here reads standard input or writes to standard output: both belong to the program that is run.

# The GPUs that programs for other machines have kernels for: Turing to Blackwell, and PTX for later ones.
# shellcheck disable=SC2034
gpu_architectures='75-real;80-real;86-real;89-real;90-real;100-real;120'
os_release=/etc/os-release
cgroup=/sys/fs/cgroup
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)

# Whether this directory was made by tools/pack: it holds programs, and nothing to build them from.
is_carried() { [ -e "$root/CARRIED" ]; }

# Tells the tests and benchmarks of such a directory where their files are, which is not where they were built. A test that does
# not find its data is to fail: whoever runs tests there would hardly notice that it is skipped.
use_carried() {
  export SWEEP_TEST_DATA=$root/tests/data SWEEP_PROGRAM=$root/build/bin/sweep SWEEP_TEST_NEED_DATA=1
  [ -n "${SWEEP_DATA:-}" ] && [ -d "$SWEEP_DATA/fashion-mnist" ] || [ ! -d "$root/data/fashion-mnist" ] ||
    export SWEEP_DATA=$root/data
  use_fallback_libraries
}

# Uses the compiler's libraries that came along if the machine's own are missing or too old. Only then: they need a later glibc than
# the programs do.
use_fallback_libraries() {
  local program=$root/build/bin/sweep own carried
  own=$("$program" --version 2>&1) && return
  export LD_LIBRARY_PATH=$root/build/fallback${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  carried=$("$program" --version 2>&1) && return
  give_up "$(printf '%s\n' "the programs run neither with the libraries of this machine nor with those that came along:" \
    "  ${own##*$'\n'}" "  ${carried##*$'\n'}")"
}

# cuda_problem PROGRAM: prints why it cannot use CUDA on this machine; prints nothing if it can.
cuda_problem() { "$1" devices 2>&1 | sed -n 's/^cuda .*cannot be used: //p'; }

say() { printf 'tools/%s: %s\n' "${0##*/}" "$*" >&2; }
# Ends with 2, the exit code for a wrong command line: nothing was started.
die() { say "$@"; exit 2; }
# Ends with 1: the machine or the sources are at fault.
give_up() { say "$@"; exit 1; }

# wants WHAT OPTION [VALUE…]: ends unless the option has a value.
wants() { [ -n "${3:-}" ] || die "$2 needs $1"; }

# built_directory DIR: its whole path. Ends unless CMake has configured it.
built_directory() {
  [ -e "$1/CMakeCache.txt" ] || die "--built: got \"$1\", want a directory in which sweep is built"
  readlink -f "$1"
}

# quietly LOG COMMAND…: keeps the output in LOG; shows its end if the command fails.
quietly() {
  local log=$1 status=0
  shift
  "$@" >"$log" 2>&1 </dev/null || status=$?
  if [ "$status" != 0 ]; then
    tail -n 60 "$log" >&2
    say "failed with status $status: $*"
  fi
  return "$status"
}

# The program that installs packages here: apt-get, dnf or nothing.
package_manager() { command -v apt-get dnf | sed -n '1s|.*/||p'; }

# packages SECTION…: the names that packages under these sections of packages.txt have here. With needed_only=1: without the optional ones.
packages() {
  awk -v wanted=" $* " -v key="$(package_manager)=" -v needed_only="${needed_only:-}" '
    /^\[/ { on = index(wanted, " " substr($0, 2, length($0) - 2) " "); next }
    needed_only && $2 == "optional" { next }
    on && !/^#/ && NF { name = $1; for (i = 2; i <= NF; i++) if (index($i, key) == 1) name = substr($i, length(key) + 1)
                        if (name != "-") print name }' "$root/tools/packages.txt" | sort -u
}

# missing_packages PACKAGE…: prints those that are not installed, one per line.
missing_packages() {
  if [ "$(package_manager)" = dnf ]; then
    local package
    for package in "$@"; do rpm -q --quiet --whatprovides "$package" || echo "$package"; done
    return
  fi
  dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
    awk -v wanted="$*" '$1 == "installed" { have[$2] }
                        END { n = split(wanted, names, " "); for (i = 1; i <= n; i++) if (!(names[i] in have)) print names[i] }'
}

# Ends where packages cannot be what the build needs, with what that is.
check_system() {
  local ID='' VERSION_ID='' PRETTY_NAME='this system' program
  # shellcheck disable=SC1090
  [ ! -e "$os_release" ] || . "$os_release"
  case $ID:$VERSION_ID in
    debian:[1-9] | debian:1[01] | ubuntu:1* | ubuntu:2[0-3]*)
      give_up "$PRETTY_NAME cannot build sweep: CMake 3.25, GCC 12 and libspng are needed. The wheel that tools/release makes elsewhere runs from glibc 2.34 on" ;;
  esac
  [ -z "$(package_manager)" ] || return 0
  for program in cmake ninja c++ protoc; do
    command -v $program >/dev/null ||
      give_up "$PRETTY_NAME has neither apt-get nor dnf, and no $program. Needed are what these Debian packages hold: $(packages "$@" | tr '\n' ' ')"
  done
}

# install_packages SECTION…: installs what is missing, and says so in one line with $next, what comes after it; takes some milliseconds if
# nothing is.
install_packages() {
  local manager wanted missing log as_root=() options=(-q -y)
  check_system "$@"
  manager=$(package_manager)
  [ -n "$manager" ] || return 0
  mapfile -t wanted < <(packages "$@")
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  [ ${#missing[@]} -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || sudo -v; }; then
      mapfile -t wanted < <(needed_only=1 packages "$@")
      [ -z "$(missing_packages "${wanted[@]}")" ] ||
        give_up "packages are missing, and there is neither root nor sudo. Ask for: $manager install ${missing[*]}"
      say "going on without ${missing[*]}, which only root can install"
      return 0
    fi
    as_root=(sudo)
  fi
  say "installing ${#missing[@]} packages by $manager (${missing[*]})${next:-}"
  log=$(mktemp)
  if [ "$manager" = apt-get ]; then
    # Old package lists are the usual reason why an install fails. Without a network the packages may still be in apt's cache.
    quietly "$log" "${as_root[@]}" apt-get -q update || say "going on with the package lists there are"
    as_root+=(env DEBIAN_FRONTEND=noninteractive)
    options+=(--no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
  fi
  quietly "$log" "${as_root[@]}" "$manager" "${options[@]}" install "${missing[@]}" || { rm -f "$log"; give_up "cannot install the packages"; }
  rm -f "$log"
}

# Prints how many cores this process may use, of those of its container too.
usable_cores() {
  local cores quota period
  cores=$(nproc)
  if read -r quota period 2>/dev/null <"$cgroup/cpu.max" && [ "$quota" != max ]; then
    quota=$(((quota + period - 1) / period))
    [ "$quota" -ge "$cores" ] || cores=$quota
  fi
  echo "$cores"
}

# Prints how many compilers may run at once: SWEEP_BUILD_JOBS, or one per core, and 1.5 or 2 GB of memory for each. In a container
# all of its memory is free that its processes and temporary files do not hold.
build_jobs() {
  local cores each memory limit
  if [ -n "${SWEEP_BUILD_JOBS:-}" ]; then
    [[ $SWEEP_BUILD_JOBS =~ ^[1-9][0-9]{0,3}$ ]] || die "SWEEP_BUILD_JOBS: got \"$SWEEP_BUILD_JOBS\", want how many compilers may run at once"
    echo "$SWEEP_BUILD_JOBS"
    return
  fi
  cores=$(usable_cores)
  # Kilobytes that a compiler takes; see options.cmake.
  each=$(awk '/^MemTotal:/ { print ($2 / 1024 > 7000 ? 2000000 : 1500000) }' /proc/meminfo 2>/dev/null || echo 1500000)
  memory=$(awk -v each="$each" '/^MemAvailable:/ { print int($2 / each) }' /proc/meminfo 2>/dev/null || true)
  limit=$(cat "$cgroup/memory.max" 2>/dev/null || echo max)
  if [ "$limit" != max ]; then
    limit=$(awk -v limit="$limit" -v each="$each" '/^(anon|shmem) / { limit -= $2 } END { print int(limit / each / 1000) }' "$cgroup/memory.stat")
    [ "$limit" -ge "${memory:-0}" ] || memory=$limit
  fi
  [ "${memory:-0}" -ge 1 ] || memory=1
  [ "$memory" -lt "$cores" ] && echo "$memory" || echo "$cores"
}

# wanted_options PRESET [-D…]: NAME=VALUE lines, as CMake's cache has them.
wanted_options() {
  echo "CMAKE_HOME_DIRECTORY=$root"
  (cd "$root" && cmake --preset "$1" -N) | sed -n 's/^  \([A-Z_]*\)="\(.*\)"$/\1=\2/p'
  shift
  [ $# = 0 ] || printf '%s\n' "${@#-D}"
}

# other_options DIR PRESET [-D…]: prints "NAME=VALUE, not WANTED" for each option that DIR was configured with otherwise.
other_options() {
  local build=$1
  shift
  wanted_options "$@" | awk -F = -v cache="$build/CMakeCache.txt" '
    BEGIN { while ((getline line < cache) > 0) if (split(line, parts, /:[A-Z]+=/) > 1) have[parts[1]] = substr(line, index(line, "=") + 1) }
    { wanted = substr($0, length($1) + 2) }
    # CMake makes the path of a compiler from its name.
    $1 ~ "_COMPILER$" && substr(have[$1], length(have[$1]) - length(wanted)) == "/" wanted { next }
    have[$1] != wanted { print $1 "=" have[$1] ", not " wanted }'
}

# What a build directory that these scripts configure depends on: the path of the sources, the CUDA toolkit, the options.
build_signature() {
  printf '%s %s %s\n' "$root" "$(command -v nvcc || command -v /usr/local/cuda/bin/nvcc || echo none)" "$*"
}

# configured DIR PRESET [-D…]: whether DIR was configured like this, by these scripts or by hand.
configured() {
  [ -e "$1/build.ninja" ] || return 1
  if [ -e "$1/.configured" ]; then
    [ "$(<"$1/.configured")" = "$(build_signature "${@:2}")" ]
  else
    [ -z "$(other_options "$@")" ]
  fi
}

# configure DIR PRESET [-D…]: configures DIR unless that was done already. What somebody configured by hand is left alone.
configure() {
  local build=$1 preset=$2 log=$1/configure.log
  ! configured "$@" || return 0
  if [ -e "$build/CMakeCache.txt" ] && [ ! -e "$build/.configured" ]; then
    give_up "$(printf '%s\n' "${build#"$root/"} was configured by hand in another way. Remove it, or configure it with other options:" \
      "$(other_options "$@" | sed 's/^/  /')")"
  fi
  shift 2
  say "configuring ${build#"$root/"}"
  mkdir -p "$build" || give_up "cannot create $build"
  rm -f "$build/build.ninja"
  echo unfinished >"$build/.configured"
  # --fresh: paths that CMake found for another toolkit or source directory must not stay in its cache.
  quietly "$log" cmake --fresh -S "$root" --preset "$preset" -B "$build" "$@" || give_up "cannot configure"
  grep -e '^-- CUDA:' "$log" >&2 || true
  build_signature "$preset" "$@" >"$build/.configured"
}

# build_minutes STEPS: how long they take here. One takes about four seconds of one core.
build_minutes() {
  local jobs
  jobs=$(build_jobs)
  echo "$(($1 * 4 / 60 / jobs + 1)) min on $jobs cores"
}

# build DIR TARGET…: builds the targets. Silent if that takes less than 0.7 s; otherwise shows progress, once a minute unless on a
# terminal, and of a first build how long it will take.
build() {
  local build=$1 log=$1/build.log jobs first='' steps ninja tenths=0 status=0
  jobs=$(build_jobs)
  shift
  if [ ! -e "$build/.ninja_log" ]; then
    steps=$(ninja -C "$build" -n "$@" 2>/dev/null | sed -n 's|^\[1/\([0-9]*\)\].*|\1|p') || true
    first=" for the first time: ${steps:-0} steps, about $(build_minutes "${steps:-0}")"
  fi
  ninja -C "$build" -j "$jobs" "$@" >"$log" 2>&1 </dev/null &
  ninja=$!
  # Background processes of a script ignore Ctrl-C, so it is passed on.
  trap 'kill "$ninja" 2>/dev/null; exit 130' INT
  trap 'kill "$ninja" 2>/dev/null; exit 143' TERM
  while kill -0 "$ninja" 2>/dev/null; do
    [ $tenths != 7 ] || say "building ${build#"$root/"}$first"
    [ $tenths -lt 7 ] || [ ! -t 2 ] || printf '\r\033[K%s' "$(tail -n 1 "$log" | cut -c "1-$((${COLUMNS:-80} - 1))")" >&2
    [ $((tenths % 600)) != 599 ] || [ -t 2 ] || say "$(sed -n '$s|^\[\([0-9]*\)/\([0-9]*\)\].*|built \1 of \2 steps|p' "$log")"
    tenths=$((tenths + 1))
    sleep 0.1
  done
  [ $tenths -le 7 ] || [ ! -t 2 ] || printf '\r\033[K' >&2
  wait "$ninja" || status=$?
  trap - INT TERM
  if [ $status != 0 ]; then
    awk '!/^\[/ && ++shown <= 60' "$log" >&2
    give_up "the build failed; all of its output is in $log"
  fi
}

# Waits until no other script builds in DIR; another terminal may have started the same sweep.
lock_build() {
  mkdir -p "$1" || give_up "cannot create $1"
  exec 9>"$1/.lock"
  flock -n 9 || { say "waiting for another build in ${1#"$root/"}"; flock 9; }
}
unlock_build() { exec 9>&-; }
