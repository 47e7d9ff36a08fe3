// Programs in the place of Slurm's, which check what they are called with.
#pragma once

#include "core/base/file.h"
#include "core/base/text.h"
#include "tests/support/test.h"

namespace sweep::testing {

/// sbatch, squeue, scancel and scontrol in front of all others in PATH, as long as the object lives. A
/// program that is called with an option that the real one does not have, or that the launcher should not
/// use, fails.
class FakeSlurm {
 public:
  FakeSlurm() : path_("PATH", folder_.path().string() + ":/usr/bin:/bin") {
    const std::filesystem::path program = folder_.write("sbatch", kProgram);
    namespace fs = std::filesystem;
    fs::permissions(program, fs::perms::owner_all);
    for (const char* name : {"squeue", "scancel", "scontrol"}) fs::create_hard_link(program, folder_ / name);
    // Also "text file busy" does not happen: nobody has the file open for writing any more.
  }

  /// The lines that squeue has, "4711|0|RUNNING|None".
  void set_queue(const std::string& lines) const { folder_.write("queue", lines); }
  void set_max_array_size(int size) const { folder_.write("size", std::to_string(size)); }
  /// From now on `program` ends with 1 and says `text`; with an empty text it works again.
  void fail(const std::string& program, const std::string& text) const {
    if (text.empty())
      std::filesystem::remove(folder_ / (program + ".fail"));
    else
      folder_.write(program + ".fail", text);
  }
  /// sbatch takes the job, but its answer is lost.
  void lose_answer(const std::string& text) const { folder_.write("sbatch.lost", text); }
  void hang(const std::string& program) const { folder_.write(program + ".hang", ""); }
  void remove(const std::string& program) const { std::filesystem::remove(folder_ / program); }

  /// All calls so far, "sbatch --parsable …", words quoted for a shell.
  std::vector<std::string> calls(const std::string& program = "") const {
    const bool is_called = std::filesystem::exists(folder_ / "calls");
    const std::string text = is_called ? read_file(folder_ / "calls") : "";
    std::vector<std::string> calls;
    for (const std::string_view line : lines_of(text))
      if (line.starts_with(program)) calls.emplace_back(line);
    return calls;
  }

 private:
  static constexpr const char* kProgram = R"sh(#!/bin/bash
name=${0##*/} dir=${0%/*}
{ printf '%s' "$name"; printf ' %q' "$@"; echo; } >>"$dir/calls"
refuse() { echo "$name: error: $*" >&2; exit 2; }
[ -e "$dir/$name.hang" ] && exec sleep 100
[ -e "$dir/$name.fail" ] && { cat "$dir/$name.fail" >&2; exit 1; }
case $name in
sbatch)
  for word; do
    [ -z "$script" ] || refuse "words after the script: $word"
    case $word in
    --parsable | --requeue | --open-mode=append | --nodes=1 | --ntasks=1 | --exclusive) ;;
    --job-name=?* | --comment=sweep-* | --chdir=/* | --partition=?* | --account=?* | --qos=?* | --reservation=?*) ;;
    --time=?* | --mem=?* | --gres=?* | --constraint=?* | --exclude=?* | --cpus-per-task=[1-9]*) ;;
    --output=slurm/*.out | --output=/dev/null | --signal=B:USR2@[1-9]* | --array=0-[0-9]* | --dependency=afterany:[1-9]*) ;;
    --comment=*) ;;
    -*) refuse "unrecognized option '$word'" ;;
    *) script=$word ;;
    esac
    case $word in --comment=*) comment=${word#*=} ;; esac
  done
  [ -f "$script" ] && head -n 1 "$script" | grep -q '^#!' || refuse "no script: $script"
  number=$(($(cat "$dir/number" 2>/dev/null || echo 100) + 1))
  echo $number >"$dir/number"
  [ -e "$dir/sbatch.lost" ] && { echo "$number|$comment" >>"$dir/comments"; cat "$dir/sbatch.lost" >&2; exit 1; }
  echo $number ;;
squeue)
  case "$*" in
  '-h -r -t all -j '*' -o %F|%K|%T|%r')
    [ -s "$dir/queue" ] || { echo "slurm_load_jobs error: Invalid job id specified" >&2; exit 1; }
    grep -E "^(${6//,/|})\\|" "$dir/queue"; exit 0 ;;
  '-h --me -t all -o %F|%k') cat "$dir/comments" 2>/dev/null; exit 0 ;;
  *) refuse "$*" ;;
  esac ;;
scancel) for word; do case $word in [1-9]*) ;; *) refuse "$word" ;; esac; done ;;
scontrol)
  case "$*" in
  'show config') echo "Configuration data"; echo "MaxArraySize            = $(cat "$dir/size" 2>/dev/null || echo 1001)" ;;
  'requeue '[1-9]*) ;;
  'release '[1-9]*)
    # A task that is let go waits as any other.
    for word in "${@:2}"; do
      case $word in *_*) key="${word/_/[|]}" ;; *) key="$word[|]N/A" ;; esac
      sed -i -E "s#^($key[|]PENDING)[|].*#\1|None#" "$dir/queue"
    done ;;
  *) refuse "$*" ;;
  esac ;;
esac
)sh";

  test::TemporaryDirectory folder_;
  test::Environment path_;
};

}  // namespace sweep::testing
