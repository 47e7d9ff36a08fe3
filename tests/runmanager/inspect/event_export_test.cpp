#include "runmanager/inspect/event_export.h"

#include <nlohmann/json.hpp>

#include "runmanager/text/table_text.h"
#include "tbwriter/record.h"
#include "tbwriter/summary_writer.h"
#include "tests/support/run_world.h"

namespace sweep::event_export_test {

proto::Event event_at(std::int64_t step) {
  proto::Event event;
  event.set_wall_time(100.5 + static_cast<double>(step));
  event.set_step(step);
  return event;
}

proto::Event scalar(const std::string& tag, float value, std::int64_t step) {
  proto::Event event = event_at(step);
  auto* part = event.mutable_summary()->add_value();
  part->set_tag(tag);
  part->set_simple_value(value);
  return event;
}

// As TensorFlow 2 writes it: only the first value of a tag has metadata.
proto::Event tensor(const std::string& tag, const std::string& plugin, double value, std::int64_t step) {
  proto::Event event = event_at(step);
  auto* part = event.mutable_summary()->add_value();
  part->set_tag(tag);
  if (!plugin.empty()) part->mutable_metadata()->mutable_plugin_data()->set_plugin_name(plugin);
  part->mutable_tensor()->set_dtype(proto::DT_DOUBLE);
  part->mutable_tensor()->add_double_val(value);
  return event;
}

class Export : public ::testing::Test {
 protected:
  void write(const std::string& run, const std::vector<proto::Event>& events, int number = 0) {
    std::string bytes;
    proto::Event version;
    version.set_file_version("brain.Event:2");
    tbwriter::append_record(bytes, version.SerializeAsString());
    for (const proto::Event& event : events) tbwriter::append_record(bytes, event.SerializeAsString());
    fs::create_directories(directory_ / run);
    tbwriter::spill(path(run, number), bytes);
  }
  fs::path path(const std::string& run, int number = 0) const {
    return directory_ / run / ("events.out.tfevents." + std::to_string(1700000000 + number) + ".other");
  }
  std::vector<std::vector<std::string>> csv(const std::vector<std::string>& tags = {}) const {
    return parse_csv(export_csv(read_logdir(directory_.path(), tags)));
  }

  TemporaryDirectory directory_;
};

TEST_F(Export, ReadsScalarsOfBothFormsInAnyDepth) {
  write("", {scalar("a", 0.5f, 1)});
  write("x/y", {tensor("b, \"c\"", "scalars", 0.1, 0), tensor("b, \"c\"", "", 0.2, 1),
                tensor("curve", "pr_curves", 3, 0), tensor("curve", "", 4, 1)});
  EXPECT_THAT(csv(), ElementsAre(ElementsAre("run", "tag", "step", "wall_time", "value"),
                                 ElementsAre(".", "a", "1", "101.5", "0.5"),
                                 ElementsAre("x/y", "b, \"c\"", "0", "100.5", "0.1"),
                                 ElementsAre("x/y", "b, \"c\"", "1", "101.5", "0.2")));
}

TEST_F(Export, ReadsHyperparametersOfTheWriter) {
  {
    tbwriter::SummaryWriter writer(directory_ / "run|1");
    writer.add_hparams_start({{"lr", 0.25}, {"name", std::string("a,b")}, {"on", true}});
    writer.add_scalar("Loss/train", 2, 0);
    writer.add_scalar("Loss/train", std::numeric_limits<double>::quiet_NaN(), 1);
    writer.close();
  }
  const ExportedLogdir logdir = read_logdir(directory_.path());
  const auto rows = parse_csv(export_csv(logdir));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[0], ElementsAre("run", "tag", "step", "wall_time", "value", "hparam.lr", "hparam.name",
                                   "hparam.on"));
  EXPECT_EQ(rows[2][4], "nan");
  EXPECT_EQ(rows[2][6], "a,b");
  const auto json = nlohmann::json::parse(export_json(logdir));
  const auto& run = json["runs"][0];
  EXPECT_EQ(run["name"], "run|1");
  EXPECT_EQ(run["hparams"], nlohmann::json({{"lr", 0.25}, {"name", "a,b"}, {"on", true}}));
  EXPECT_EQ(run["status"], "success");
  EXPECT_EQ(run["scalars"]["Loss/train"][0]["value"], 2.0);
  EXPECT_EQ(run["scalars"]["Loss/train"][1]["value"], "NaN");
  EXPECT_EQ(run["scalars"]["Loss/train"][1]["step"], 1);
  EXPECT_EQ(export_markdown(logdir),
            "| run | lr | name | on | Loss/train |\n| --- | --- | --- | --- | --- |\n"
            "| run&#124;1 | 0.25 | a,b | true | nan |\n");
}

TEST_F(Export, WritesARowForARunWithoutScalars) {
  {
    tbwriter::SummaryWriter writer(directory_ / "r");
    writer.add_hparams_start({{"lr", 0.25}});
  }
  EXPECT_THAT(csv(), ElementsAre(testing::_, ElementsAre("r", "", "", "", "", "0.25")));
}

TEST_F(Export, MatchesTagsFromTheirBeginning) {
  write("r", {scalar("Loss/train", 1, 0), scalar("Loss/validation", 2, 0), scalar("My/Loss/train", 3, 0)});
  EXPECT_EQ(csv({"Loss/"}).size(), 3u);
  EXPECT_EQ(csv({".*train$"}).size(), 3u);
  EXPECT_EQ(csv({"Loss/v", "My"}).size(), 3u);
  EXPECT_THROW(csv({"("}), ConfigError);
  EXPECT_THAT(message_of<DataError>([&] { csv({"Acc"}); }),
              HasSubstr("begins with Acc; there are: Loss/train, Loss/validation"));
}

TEST_F(Export, CountsPointsOnceThatAResumedRunWroteAgain) {
  proto::Event start = event_at(1);
  start.mutable_session_log()->set_status(proto::SessionLog::START);
  write("r", {scalar("a", 1, 0), scalar("a", 2, 1), scalar("a", 3, 2)}, 0);
  write("r", {start, scalar("a", 4, 1)}, 1);
  const ExportedLogdir logdir = read_logdir(directory_.path());
  ASSERT_EQ(logdir.runs.at(0).scalars.at(0).points.size(), 2u);
  EXPECT_EQ(logdir.runs[0].scalars[0].points[0].value, 1);
  EXPECT_EQ(logdir.runs[0].scalars[0].points[1].value, 4);
}

TEST_F(Export, LeavesOutAndReportsADamagedRecord) {
  write("r", {scalar("a", 1, 0), scalar("a", 2, 1), scalar("a", 3, 2)});
  EXPECT_THAT(read_logdir(directory_.path()).damage, IsEmpty());
  const std::string whole = read_file(path("r"));
  tbwriter::spill(path("r"), flipped(whole, whole.size() - 5));  // in the last payload, before its checksum
  const ExportedLogdir logdir = read_logdir(directory_.path());
  EXPECT_EQ(logdir.runs.at(0).scalars.at(0).points.size(), 2u);
  EXPECT_THAT(logdir.damage, ElementsAre(HasSubstr("1 damaged records left out")));
  // A file that is being written may end anywhere.
  for (std::size_t size = 0; size < whole.size(); ++size) {
    tbwriter::spill(path("r"), whole.substr(0, size));
    EXPECT_THAT(read_logdir(directory_.path()).damage, IsEmpty()) << size;
  }
}

TEST_F(Export, NamesThatAreNotUtf8GiveValidJson) {
  write("r", {scalar("x", 1, 0)});
  std::string bytes = read_file(path("r"));
  const std::string bad = "bad \xff \" tag";
  std::string payload = scalar(std::string(bad.size(), 'x'), 1, 1).SerializeAsString();
  payload.replace(payload.find(std::string(bad.size(), 'x')), bad.size(), bad);
  tbwriter::append_record(bytes, payload);
  tbwriter::spill(path("r"), bytes);
  const auto json = nlohmann::json::parse(export_json(read_logdir(directory_.path())));
  EXPECT_TRUE(json["runs"][0]["scalars"].contains("bad \xef\xbf\xbd \" tag"));  // U+FFFD
}

TEST(Csv, ReadsWhatRfc4180Shows) {
  // Section 2 of the RFC: rules 2, 5, 6 and 7.
  using Rows = std::vector<std::vector<std::string>>;
  EXPECT_EQ(parse_csv_text("aaa,bbb,ccc\r\nzzz,yyy,xxx", "f"),
            (Rows{{"aaa", "bbb", "ccc"}, {"zzz", "yyy", "xxx"}}));
  EXPECT_EQ(parse_csv_text("\"aaa\",\"b\r\nbb\",\"ccc\"\r\n", "f"), (Rows{{"aaa", "b\r\nbb", "ccc"}}));
  EXPECT_EQ(parse_csv_text("\"aaa\",\"b\"\"bb\",\"ccc\"", "f"), (Rows{{"aaa", "b\"bb", "ccc"}}));
  for (const char* wrong : {"\"a", "\"a\"b", "a\n\"b\"\"\n"})
    EXPECT_THROW(parse_csv_text(wrong, "f"), DataError) << wrong;
}

TEST(Csv, LeavesTextAsItIsAndReadsBackWhatWasWritten) {
  const std::vector<std::string> cells = {"=1+2", "+x", "-x", "@x", "'x", "-inf", "a \"b\"", "c,d", " e"};
  const std::string row = csv_row(cells);
  EXPECT_EQ(row, "=1+2,+x,-x,@x,'x,-inf,\"a \"\"b\"\"\",\"c,d\",\" e\"\n");
  EXPECT_EQ(parse_csv_text(row, "f").at(0), cells);
}

}  // namespace sweep::event_export_test
