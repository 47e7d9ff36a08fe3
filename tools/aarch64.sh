# shellcheck shell=bash
# Building for aarch64 on another machine, by Debian's cross compiler, and running that under qemu. Sourced after common.sh.

# shellcheck disable=SC2154
sysroot=$root/build-aarch64/sysroot

# Lets the kernel start programs for aarch64 by qemu, also when they start each other; for the processes of a user namespace only. The second
# and third field: the first 20 bytes of such a file, and which bits of them are looked at.
# shellcheck disable=SC2016
register_qemu='mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
zeros=$(printf "\\\\x00%.0s" {1..9}) ones=$(printf "\\\\xff%.0s" {1..8})
printf %s ":aarch64:M::\x7fELF\x02\x01\x01$zeros\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00$ones\xfe\xff\xff\xff:$(command -v qemu-aarch64-static):FP" \
  >/proc/sys/fs/binfmt_misc/register
exec "$@"'

# under_qemu COMMAND…: runs it where programs for aarch64 can be started, with the libraries in $sysroot.
under_qemu() { QEMU_LD_PREFIX=$sysroot unshare --user --map-root-user --mount bash -ec "$register_qemu" bash "$@"; }

# Makes $sysroot, Debian's headers and libraries for aarch64, where tools/cmake/aarch64.cmake looks for it; installs the compiler.
make_sysroot() {
  local names
  install_packages aarch64
  [ ! -e "$sysroot/.ready" ] || return 0
  say "unpacking Debian's libraries for aarch64 into ${sysroot#"$root/"}"
  rm -rf "$sysroot"
  names=$(packages run test | grep -E -- '-dev$|^libjs-|^unifont$' | grep -v openmpi | tr '\n' ',')
  # shellcheck disable=SC1090
  quietly "$build_dir/sysroot.log" mmdebstrap --mode=chrootless --variant=extract --architectures=arm64 --include="${names%,}" --skip=cleanup \
    "$(. "$os_release" && echo "$VERSION_CODENAME")" "$sysroot" || give_up "cannot unpack Debian's libraries for aarch64"
  absolute_links "$sysroot"
  list_packages "$sysroot"
  touch "$sysroot/.ready"
}

# absolute_links ROOT: makes links to absolute paths lead into ROOT.
absolute_links() {
  find "$1" -type l -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link target; do ln -sfn "$1$target" "$link"; done
}

# list_packages ROOT: writes dpkg's database for the packages that were unpacked in ROOT, with the paths that their files have there, so that
# dpkg-shlibdeps finds what a library belongs to.
list_packages() {
  local database=$1/var/lib/dpkg package name control
  control=$(mktemp -d)
  mkdir -p "$database/info"
  echo 1 >"$database/info/format"
  : >"$database/status"
  for package in "$1"/var/cache/apt/archives/*.deb; do
    rm -rf "$control"
    dpkg-deb --control "$package" "$control"
    # shellcheck disable=SC2016
    name=$(dpkg-deb --show --showformat '${Package}' "$package")
    ! grep -q '^Multi-Arch: same' "$control/control" || name+=:arm64
    { sed '/^Package:/a Status: install ok installed' "$control/control"; echo; } >>"$database/status"
    dpkg-deb --fsys-tarfile "$package" | tar -t | sed "s|^\./|$1/|; s|/\$||" >"$database/info/$name.list"
    for file in symbols shlibs; do [ ! -e "$control/$file" ] || cp "$control/$file" "$database/info/$name.$file"; done
  done
  rm -rf "$control"
}

# write_shlibdeps FILE: a dpkg-shlibdeps that looks for libraries and their packages in $sysroot.
write_shlibdeps() {
  printf '#!/bin/sh\nDEB_HOST_ARCH=arm64 exec %q --admindir=%q -l%q -l%q "$@"\n' "$(command -v dpkg-shlibdeps)" "$sysroot/var/lib/dpkg" \
    "$sysroot/lib/aarch64-linux-gnu" "$sysroot/usr/lib/aarch64-linux-gnu" >"$1"
  chmod +x "$1"
}
