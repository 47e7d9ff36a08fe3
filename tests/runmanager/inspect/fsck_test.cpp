// Plants every kind of damage in the files of a finished sweep.
#include "runmanager/inspect/fsck.h"

#include <fmt/format.h>

#include "runmanager/inspect/run_listing.h"
#include "runmanager/records/run_record_json.h"
#include "tbwriter/event_files.h"
#include "tests/support/run_world.h"

namespace sweep::fsck_test {

// A finished sweep of two runs.
class Fsck : public ::testing::Test {
 protected:
  Fsck() { world_.run(small_sweep()); }

  fs::path sweep() const { return world_.options.logdir / "small"; }
  fs::path file(const std::string& name) const { return sweep() / kFirst / name; }
  fs::path events() const { return file(tbwriter::list_event_files(sweep() / kFirst).back()); }
  FsckReport check() const { return check_directory(sweep()); }

  FileFinding finding(const std::string& path) const {
    for (FileFinding& found : check().files) {
      if (found.path == path) return std::move(found);
    }
    throw std::logic_error("not checked: " + path);
  }

  // The problems of the only damaged file, which has to be `name`.
  std::string only_damage(const fs::path& path) const {
    std::string text;
    for (const FileFinding& finding : check().files) {
      if (!finding.damaged()) continue;
      EXPECT_EQ(finding.path, path.lexically_relative(sweep()));
      for (const std::string& problem : finding.problems) text += problem + "\n";
    }
    return text;
  }

  // Replaces the first `from` in a file. A run.json then has no checksum, as those of older versions.
  static void edit(const fs::path& path, const std::string& from, const std::string& to) {
    std::string text = read_file(path);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos);
    text.replace(at, from.size(), to);
    if (const std::size_t checksum = text.rfind(",\n  \"crc32c\""); checksum != std::string::npos)
      text.replace(checksum, std::string::npos, "\n}\n");
    tbwriter::spill(path, text);
  }

  // Where each record of an events file begins, and the file's end. Lengths are the first 8 bytes of each
  // record, little endian; 4 bytes follow them, and 4 the payload.
  static std::vector<std::size_t> record_offsets(const std::string& bytes) {
    std::vector<std::size_t> offsets = {0};
    while (offsets.back() < bytes.size()) {
      std::size_t length = 0;
      for (std::size_t i = 8; i-- > 0;)
        length = length << 8 | static_cast<unsigned char>(bytes.at(offsets.back() + i));
      offsets.push_back(offsets.back() + 16 + length);
    }
    return offsets;
  }

  World world_;
};

TEST_F(Fsck, FindsNothingWrongWithAFinishedSweep) {
  const FsckReport report = check();
  EXPECT_EQ(report.damaged(), 0u) << fsck_text(report);
  std::vector<std::string> paths;
  for (const FileFinding& finding : report.files) {
    EXPECT_THAT(finding.notes, IsEmpty()) << finding.path;
    EXPECT_EQ(finding.bytes, fs::file_size(sweep() / finding.path)) << finding.path;
    paths.push_back(finding.path);
  }
  EXPECT_EQ(paths.size(), 3u + 2 * 3) << fsck_text(report);
  for (const char* name : {"sweep.json", "results.json", "results.csv"}) EXPECT_THAT(paths, Contains(name));
  EXPECT_EQ(check_directory(sweep() / kFirst).damaged(), 0u);
  EXPECT_EQ(check_directory(world_.options.logdir).damaged(), 0u);
}

// "loss" is also an axis. Earlier versions called its column as that of the epochs' loss.
TEST_F(Fsck, ComparesTheColumnsOfEpochsAndOfMeasuresAlone) {
  for (const char* name : {"results.json", "results.csv"}) fs::remove(sweep() / name);
  std::vector<RunRecord> records;
  for (const char* name : {kFirst, kSecond}) {
    RunRecord record = read_run_record(sweep() / name / "run.json");
    record.params.emplace_back("loss", "mse");
    for (EpochRecord& epoch : record.epochs) epoch.set("top5_accuracy", 0.75);
    tbwriter::spill(sweep() / name / "run.json", run_record_text(record));
    records.push_back(std::move(record));
  }
  save_results(sweep() / "results", records, "small", {"lr", "device", "loss"}, Survives::kKill);
  EXPECT_EQ(check().damaged(), 0u) << fsck_text(check());
  edit(sweep() / "results.csv", ",param.loss\n", ",loss\n");
  EXPECT_EQ(check().damaged(), 0u) << fsck_text(check());
  edit(sweep() / "results.csv", ",loss\n", ",param.loss\n");
  edit(sweep() / "results.csv", ",0.75,0.5,cpu", ",0.7,0.5,cpu");
  EXPECT_THAT(only_damage(sweep() / "results.csv"), HasSubstr("row 2 is"));
}

TEST_F(Fsck, CountsRecordsAsTheProtobufParserDoes) {
  const std::size_t records = tbwriter::read_events(events()).size();
  EXPECT_EQ(finding(events().lexically_relative(sweep())).records, records);
}

TEST_F(Fsck, FindsEveryFlippedByteOfAnEventsFile) {
  const std::string whole = read_file(events());
  const auto offsets = record_offsets(whole);
  ASSERT_EQ(offsets.back(), whole.size());
  for (std::size_t at = 0; at < whole.size(); at += at < 200 ? 1 : 97) {
    SCOPED_TRACE(at);
    tbwriter::spill(events(), flipped(whole, at, 0x10));
    std::size_t record = 0;
    while (offsets[record + 1] <= at) ++record;
    const FsckReport report = check_directory(events().parent_path());
    ASSERT_EQ(report.damaged(), 1u);
    const FileFinding& damaged = *std::ranges::find_if(report.files, &FileFinding::damaged);
    EXPECT_THAT(damaged.problems.at(0),
                HasSubstr(fmt::format("record {} at byte {}", record, offsets[record])));
    // A damaged payload costs one record, a damaged length all that follow.
    const bool length = at - offsets[record] < 12;
    EXPECT_EQ(damaged.records, length ? record : offsets.size() - 2);
  }
}

TEST_F(Fsck, ACutEventsFileIsDamageOnlyInACompletedRun) {
  const std::string whole = read_file(events());
  tbwriter::spill(events(), whole.substr(0, whole.size() - 5));
  const auto offsets = record_offsets(whole);
  const std::size_t last = offsets.size() - 2;
  EXPECT_THAT(only_damage(events()),
              AllOf(HasSubstr("ends within a record"),
                    HasSubstr(fmt::format("record {} at byte {} is not whole, {} bytes are lost", last,
                                          offsets[last], whole.size() - 5 - offsets[last]))));
  for (const char* name : {"run.json", "checkpoint.safetensors"}) fs::remove(file(name));
  const FsckReport alone = check_directory(sweep() / kFirst);
  EXPECT_EQ(alone.damaged(), 0u) << "the run may still be going on";
  EXPECT_THAT(alone.files.at(0).notes, ElementsAre(HasSubstr("ends within a record")));
  edit(sweep() / kSecond / "run.json", "\"completed\"", "\"interrupted\"");
  const fs::path others = sweep() / kSecond / tbwriter::list_event_files(sweep() / kSecond).back();
  fs::resize_file(others, fs::file_size(others) - 1);
  EXPECT_EQ(check_directory(sweep() / kSecond).damaged(), 0u) << "nor in an interrupted one";
}

TEST_F(Fsck, FindsEveryFileThatIsMissingCutOrHasAFlippedBit) {
  // The tensors are the last part of the checkpoint: 51 weights and 4 bytes for each. The sweep's name, which
  // comes first in results.json, is also that of its directory, which anybody may rename.
  const std::size_t tensors = fs::file_size(file("checkpoint.safetensors")) - 51 * 4,
                    runs = read_file(sweep() / "results.json").find("\"runs\"");
  const struct {
    fs::path path;
    std::size_t first;    // byte whose change is damage
    const char* missing;  // what is said; none: the file has a test of its own
  } files[] = {{file("checkpoint.safetensors"), tensors, "is missing: the weights are lost\n"},
               {file("run.json"), 0, nullptr},
               {sweep() / "sweep.json", 0, "is missing\n"},
               {sweep() / "results.json", runs, "is missing\n"},
               {sweep() / "results.csv", 0, "is missing\n"}};
  for (const auto& [path, first, missing] : files) {
    SCOPED_TRACE(path);
    const std::string whole = read_file(path);
    for (std::size_t at = first; at + 1 < whole.size(); at += 5) {  // the last line break may be anything
      tbwriter::spill(path, flipped(whole, at, 1 << at % 7));
      EXPECT_NE(check().damaged(), 0u) << at << ": \"" << whole.substr(at, 20) << "\"";
    }
    if (missing != nullptr) {
      for (const std::size_t size : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 3}) {
        tbwriter::spill(path, whole.substr(0, size));
        EXPECT_NE(only_damage(path), "") << size;
      }
      fs::remove(path);
      EXPECT_THAT(only_damage(path), HasSubstr(missing));
    }
    tbwriter::spill(path, whole);
  }
}

TEST_F(Fsck, FindsEventsThatLackTheirLastRecordsOrAreMissing) {
  const std::string whole = read_file(events());
  const auto offsets = record_offsets(whole);
  tbwriter::spill(events(), whole.substr(0, offsets[offsets.size() - 2]));
  EXPECT_EQ(only_damage(events()), fmt::format("has {} bytes, but had {} at the end of the run\n",
                                               offsets[offsets.size() - 2], whole.size()));
  fs::remove(events());
  EXPECT_THAT(only_damage(file("events.out.tfevents.*")), HasSubstr("is missing"));
}

TEST_F(Fsck, ComparesACheckpointWithTheNetworkAndTheRun) {
  const fs::path path = file("checkpoint.safetensors");
  const std::string layers =
      R"("network": {"name": "n", "layers": [{"name": "s", "type": "sequential", "layers": [
          {"name": "norm", "type": "batch_norm2d", "affine": false}]}, {"name": "flatten", "type": "flatten"},
        {"name": "out", "type": "linear", "out_features": 4, "bias": true},
        {"name": "fc2", "type": "linear", "out_features": 4, "bias": false}]})";
  edit(file("run.json"), R"("network": "small-net")", layers);
  EXPECT_EQ(only_damage(path),
            "wrong shape: out.weight is [3, 16], the network's is [4, 16]\n"
            "wrong shape: out.bias is [3], the network's is [4]\n"
            "missing: fc2.weight [4, 4]\n"
            "missing: s.norm.running_mean [1]\n"
            "missing: s.norm.running_var [1]\n"
            "wrong shape: optimizer/momentum/out.weight is [3, 16], the network's is [4, 16]\n"
            "wrong shape: optimizer/momentum/out.bias is [3], the network's is [4]\n"
            "missing: optimizer/momentum/fc2.weight [4, 4]\n");
}

TEST_F(Fsck, FindsAMissingOrDamagedRecordOfARun) {
  const std::string whole = read_file(file("run.json"));
  tbwriter::spill(file("run.json"), whole.substr(0, whole.size() / 2));
  EXPECT_THAT(only_damage(file("run.json")), HasSubstr("the run's record is lost"));
  fs::remove(file("run.json"));
  EXPECT_THAT(only_damage(file("run.json")),
              HasSubstr("is missing, though results.json calls the run completed"));
  fs::create_symlink("run.json", file("run.json"));
  EXPECT_THAT(only_damage(file("run.json")), HasSubstr("cannot be read: ")) << "not lost";
}

TEST_F(Fsck, FindsResultsThatContradictEachOther) {
  edit(sweep() / "results.csv", "0.5", "0.625");  // The first is in a name of a run.
  EXPECT_THAT(only_damage(sweep() / "results.csv"), HasSubstr("row 2 is \"lr=0.625,device=cpu,completed"));
  edit(sweep() / "results.csv", "0.625", "0.5");
  edit(sweep() / "results.csv", "completed,1,0.5,", "completed,1,0.625,");
  EXPECT_THAT(only_damage(sweep() / "results.csv"),
              AllOf(HasSubstr("completed,1,0.625,"), HasSubstr(", the runs' records give"),
                    HasSubstr("completed,1,0.5,")));
  edit(sweep() / "results.csv", "completed,1,0.625,", "completed,1,0.5,");
  edit(file("run.json"), "\"completed\"", "\"failed\"");
  const auto problem_of_json = [this] { return finding("results.json").problems.at(0); };
  EXPECT_EQ(problem_of_json(),
            fmt::format("/status of {} is \"completed\", its run.json gives \"failed\"", kFirst));
  RunRecord record = read_run_record(file("run.json"));
  record.status = RunStatus::kCompleted;
  record.epochs.push_back(record.epochs.back());
  tbwriter::spill(file("run.json"), run_record_text(record));
  EXPECT_THAT(problem_of_json(), StartsWith(fmt::format("/epochs/- of {} is missing, its run.json", kFirst)));
}

TEST_F(Fsck, AStartThatWasKilledBeforeItsFirstResultsHasNone) {
  for (const fs::path& name : {fs::path("results.json"), fs::path("results.csv"), fs::path(kFirst)})
    fs::remove_all(sweep() / name);
  EXPECT_EQ(check().damaged(), 2u) << "the other run has a record";
  for (const fs::directory_entry& entry : fs::directory_iterator(sweep()))
    if (entry.is_directory()) fs::remove_all(entry.path());
  EXPECT_EQ(check().damaged(), 0u);
}

TEST_F(Fsck, ATrialThatWaitedMayHaveGoneOnSinceTheResultsWereWritten) {
  RunRecord record = read_run_record(file("run.json"));
  std::vector<RunRecord> runs = list_runs(sweep());
  RunRecord& waiting = runs.front();
  waiting.status = RunStatus::kInterrupted;
  waiting.epochs.pop_back();
  save_results(sweep() / "results", runs, "small", {"lr", "device"}, Survives::kKill);
  EXPECT_EQ(only_damage(sweep() / "results.json"), "") << "it was completed";
  record.status = RunStatus::kInterrupted;
  tbwriter::spill(file("run.json"), run_record_text(record));
  EXPECT_EQ(only_damage(sweep() / "results.json"), "") << "it waits again";
  record.epochs.pop_back();
  record.epochs.front().set("loss", 3);
  tbwriter::spill(file("run.json"), run_record_text(record));
  EXPECT_EQ(check().damaged(), 2u) << "it still waits, but both results have another loss";
  record.status = RunStatus::kRunning;
  tbwriter::spill(file("run.json"), run_record_text(record));
  EXPECT_EQ(check().damaged(), 0u) << "another process has just begun to train it";
}

TEST_F(Fsck, ARunMayEndWhileTheSweepIsChecked) {
  std::vector<RunRecord> runs = list_runs(sweep());
  RecordsByName records;
  for (const RunRecord& run : runs) records[run.name] = run;
  runs.front().status = RunStatus::kRunning;
  runs.front().epochs.pop_back();
  save_results(sweep() / "results", runs, "small", {"lr", "device"}, Survives::kKill);
  const ResultFiles read_before = read_result_files(sweep());
  runs.front() = *records[runs.front().name];
  save_results(sweep() / "results", runs, "small", {"lr", "device"}, Survives::kKill);
  for (const FileFinding& finding : check_results(sweep(), read_before, records))
    EXPECT_FALSE(finding.damaged()) << finding.path;
}

TEST_F(Fsck, NewestTrialsMayBeMissingInOneFileOfAGrowingSearch) {
  const Json whole = Json::parse(read_file(sweep() / "sweep.json"));
  const auto with_runs = [&](Json runs, const char* method) {
    Json json = {{"name", "small"}, {"search", {{"method", method}}}, {"runs", std::move(runs)}};
    tbwriter::spill(sweep() / "sweep.json", json.dump());
  };
  Json more = whole.at("runs"), fewer = more, other = more;
  more.push_back("lr=9");
  fewer.erase(fewer.size() - 1);
  other[0] = "lr=9";
  for (const Json& runs : {more, fewer}) {
    with_runs(runs, "tpe");
    EXPECT_EQ(only_damage(sweep() / "results.json"), "");
    with_runs(runs, "random");
    EXPECT_THAT(only_damage(sweep() / "results.json"), HasSubstr(" the run "));
  }
  with_runs(other, "tpe");
  EXPECT_THAT(only_damage(sweep() / "results.json"), HasSubstr("lacks the run lr=9 of sweep.json"));
}

TEST_F(Fsck, PrintsTextAndJson) {
  fs::remove(sweep() / "results.csv");
  const FsckReport report = check();
  EXPECT_THAT(fsck_text(report),
              AllOf(HasSubstr("damaged  results.csv\n           is missing\n"),
                    Not(HasSubstr("results.json")), HasSubstr("; 8 ok, 1 damaged, 0 notes\n")));
  EXPECT_THAT(fsck_text(report, /*all=*/true),
              AllOf(HasSubstr("damaged  results.csv\n"), HasSubstr("ok       results.json\n")));
  const auto json = fsck_json(report);
  EXPECT_EQ(json["ok"], false);
  EXPECT_EQ(json["damaged"], 1);
  EXPECT_EQ(json["files"].size(), 9u);
}

}  // namespace sweep::fsck_test
