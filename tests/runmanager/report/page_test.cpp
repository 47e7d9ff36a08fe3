#include "runmanager/report/page.h"

#include <regex>

#include "core/json/json_text.h"
#include "runmanager/report/report.h"
#include "tbwriter/summary_writer.h"
#include "tests/runmanager/answers/made_runs.h"

namespace sweep::page_test {

using Json = nlohmann::ordered_json;

constexpr const char* kHostile = "</script><img src=x onerror=\"alert('&')\"><!--";

// The texts between the tags of all elements of this name that have the attributes.
std::vector<std::string> elements(const std::string& page, const std::string& begin, const std::string& end) {
  std::vector<std::string> found;
  for (std::size_t at = page.find(begin); at != std::string::npos; at = page.find(begin, at + 1)) {
    const std::size_t from = at + begin.size();
    found.push_back(page.substr(from, page.find(end, from) - from));
  }
  return found;
}

TEST(HtmlText, IsShownAsItIs) {
  EXPECT_EQ(html_text(kHostile),
            "&lt;/script&gt;&lt;img src=x onerror=&quot;alert(&#39;&amp;&#39;)&quot;&gt;&lt;!--");
}

TEST(ScriptJson, EndsNoElementAndStaysTheSameValue) {
  const Json json = {{kHostile, {kHostile, 1.5, nullptr}}};
  const std::string text = script_json(json);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  EXPECT_EQ(parse_json_text(text, "the test"), json);
}

TEST(ScriptJson, ReplacesBytesThatAreNotUtf8) { EXPECT_EQ(script_json(Json("\xff")), "\"\xEF\xBF\xBD\""); }

TEST(ScriptDigest, IsThatOfTheSpecification) {
  // Content Security Policy Level 3, 8.4: the digest of alert('Hello, world.');
  EXPECT_EQ(script_digest("alert('Hello, world.');"), "sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng=");
}

TEST(PngUri, IsBase64) { EXPECT_EQ(png_uri("PNG!"), "data:image/png;base64,UE5HIQ=="); }

TEST(HtmlPage, AllowsItsOwnScriptsOnly) {
  const std::string page = html_page("s", Json::object());
  const std::vector<std::string> policies =
      elements(page, "<meta http-equiv=\"Content-Security-Policy\" content=\"", "\">");
  ASSERT_EQ(policies.size(), 1u);
  EXPECT_THAT(policies[0], HasSubstr("default-src 'none'; img-src data:;"));
  EXPECT_THAT(policies[0], Not(HasSubstr("unsafe-eval")));
  EXPECT_THAT(policies[0], Not(HasSubstr("http")));
  const std::vector<std::string> scripts = elements(page, "<script>", "</script>");
  EXPECT_EQ(scripts.size(), has_vega() ? 5u : 4u);
  for (const std::string& script : scripts)
    EXPECT_THAT(policies[0], HasSubstr("'" + script_digest(script) + "'"));
}

TEST(HtmlPage, ShowsHostileTextsAsTexts) {
  const Json model = {{"title", kHostile}};
  const std::string page = html_page(kHostile, model), plain = html_page("s", {{"title", "s"}});
  EXPECT_EQ(elements(page, "<script", ">").size(), elements(plain, "<script", ">").size());
  EXPECT_EQ(elements(page, "<img", ">").size(), elements(plain, "<img", ">").size());
  const std::vector<std::string> models =
      elements(page, "<script type=\"application/json\" id=\"model\">", "</script>");
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(parse_json_text(models[0], "the page"), model);
}

TEST(HtmlPage, FillsEachPlaceOnce) {
  const std::string page = html_page("{{MODEL}}", {{"title", "{{STYLE}}"}});
  EXPECT_THAT(page, HasSubstr("<h1 id=\"title\">{{MODEL}}</h1>"));
  EXPECT_THAT(page, HasSubstr("{\"title\":\"{{STYLE}}\"}"));
}

TEST(HtmlPage, NamesNothingOutsideOfIt) {
  const std::string page = html_page("s", Json::object());
  const std::string head = page.substr(0, page.find("<script"));
  EXPECT_FALSE(std::regex_search(head, std::regex("(src|href)=\"(?!#)")));
  EXPECT_THAT(head, Not(HasSubstr("url(")));
  EXPECT_THAT(head, Not(HasSubstr("@import")));
}

TEST(HtmlPage, KeepsTheLicencesOfVega) {
  if (!has_vega()) GTEST_SKIP() << "built without Vega";
  EXPECT_THAT(std::string(embedded_file("vega.js")), HasSubstr("UW Interactive Data Lab"));
  EXPECT_THAT(html_page("s", Json::object()), HasSubstr("Redistributions in binary form must reproduce"));
}

TEST(Headline, SaysWhichRunIsBestAndWhatChangesIt) {
  const Headline answer = headline(report_data_of({graded({{"lr", 0.1}, {"size", std::int64_t{1}}}, 0.5),
                                                   graded({{"lr", 0.1}, {"size", std::int64_t{2}}}, 0.5),
                                                   graded({{"lr", 0.01}, {"size", std::int64_t{1}}}, 0.9),
                                                   graded({{"lr", 0.01}, {"size", std::int64_t{2}}}, 0.9)}));
  EXPECT_EQ(answer.best, "Best of 4 runs: 90.00% validation accuracy with lr=0.01, size=1.");
  EXPECT_THAT(answer.more, ElementsAre("What matters most is lr: 0.01 is best with 90.00% on average, 0.1 "
                                       "worst with 50.00% (100% of all differences).",
                                       "size changes the validation accuracy hardly at all."));
}

TEST(Headline, EqualResultsAreNoDifference) {
  std::vector<SourceRun> runs = {graded({{"lr", 10.0}}, 0.1), graded({{"lr", 5.0}}, 0.1),
                                 graded({{"lr", 2.0}}, 0.1)};
  for (std::size_t i = 0; i < runs.size(); ++i)
    runs[i].record.epochs[1].set("loss", static_cast<double>(i));  // so that lr changes something
  EXPECT_THAT(headline(report_data_of(runs)).more,
              ElementsAre("lr changes the validation accuracy hardly at all."));
}

TEST(Headline, LeavesOutKeysThatTheBestRunLacks) {
  const Headline answer = headline(report_data_of(
      {graded({{"optimizer", "adam"}}, 0.9), graded({{"optimizer", "sgd"}, {"momentum", 0.5}}, 0.5)}));
  EXPECT_EQ(answer.best, "Best of 2 runs: 90.00% validation accuracy with optimizer=adam.");
}

TEST(Headline, ShortensFractionsOfManyDigitsButNoWholeNumbers) {
  const auto best_of = [](ParamValue a, ParamValue b) {
    return headline(
               report_data_of({graded({{"key", std::move(a)}}, 0.9), graded({{"key", std::move(b)}}, 0.5)}))
        .best;
  };
  EXPECT_THAT(best_of(0.003307741013633609, 0.1), HasSubstr("with key=0.003308."));
  EXPECT_THAT(best_of(std::int64_t{1000000001}, std::int64_t{1}), HasSubstr("with key=1000000001."));
}

TEST(Headline, TellsHowMuchFasterADeviceIs) {
  const Headline answer =
      headline(report_data_of({graded({{"lr", 0.1}}, 0.5, 1, "cuda:0"), graded({{"lr", 0.1}}, 0.5, 12)}));
  EXPECT_THAT(answer.more.back(), HasSubstr("cuda:0 trains 12 times as fast as cpu (1 pair of runs)"));
}

TEST(Headline, TellsTheBestMeanOverRepeats) {
  const auto repeated = [](double lr, std::int64_t repeat, double accuracy) {
    return graded({{"lr", lr}, {"repeat", repeat}}, accuracy);
  };
  const Headline answer = headline(report_data_of(
      {repeated(0.1, 0, 0.95), repeated(0.1, 1, 0.5), repeated(0.01, 0, 0.8), repeated(0.01, 1, 0.9)}));
  EXPECT_EQ(answer.best, "Best of 4 runs: 95.00% validation accuracy with lr=0.1, repeat=0.");
  EXPECT_EQ(answer.more.front(), "Best mean of 2 repeats: 85.00% ± 7.07% with lr=0.01.");
}

TEST(Headline, JudgesByTheGoalOfTheSweep) {
  std::vector<SourceRun> runs;
  for (const double lr : {0.1, 0.2})
    for (const std::int64_t repeat : {0, 1}) {
      runs.push_back(made_run({{"lr", lr}, {"repeat", repeat}}, "cpu", 1));
      runs.back().record.metrics["score"] = 10 * lr + 0.01 * static_cast<double>(repeat);
    }
  const Headline answer = headline(report_data_of(runs, {asked_goal("score", true)}));
  EXPECT_EQ(answer.best, "Best of 4 runs: 2.0100 score (50.00% test accuracy) with lr=0.2, repeat=1.");
  EXPECT_THAT(answer.more, ElementsAre(HasSubstr("2.0050 ± 0.0071 with lr=0.2"),
                                       HasSubstr("lr: 0.2 is best with 2.0050 on average, 0.1 worst")));
}

TEST(Headline, SaysThatThereAreOtherGoals) {
  const Goals goals = {asked_goal("validation_accuracy", true), asked_goal("epoch_seconds", false)};
  EXPECT_EQ(headline(report_data_of({graded({{"lr", 0.1}}, 0.5), graded({{"lr", 0.2}}, 0.9)}, goals)).best,
            "Best of 2 runs: 90.00% validation accuracy, the first of 2 goals, with lr=0.2.");
}

TEST(Headline, SaysWhyThereIsNoBestRun) {
  SourceRun running = graded({{"lr", 0.1}}, 0.5);
  running.record.status = RunStatus::kRunning;
  EXPECT_EQ(headline(report_data_of({running})).best, "No run is completed yet.");
  EXPECT_EQ(headline(report_data_of({})).best, "There are no runs.");
}

TEST(RunNotes, AreALinePerReasonAndFailuresAreFirst) {
  std::vector<SourceRun> runs = {graded({{"lr", 0.1}}, 0.5)};
  for (int i = 0; i < 3; ++i) {
    SourceRun skipped = made_run({}, "cuda", 1, {});
    skipped.record.status = RunStatus::kSkipped;
    skipped.record.error = "no driver\nmore of it";
    runs.push_back(skipped);
  }
  SourceRun failed = made_run({}, "cpu", 1, {});
  failed.record.status = RunStatus::kFailed;
  failed.record.error = "the loss is not finite";
  runs.push_back(failed);
  SourceRun pending = made_run({{"lr", 9.0}}, "", 1, {});
  pending.record.status = RunStatus::kPending;
  runs.push_back(pending);
  EXPECT_THAT(run_notes(report_data_of(runs)), ElementsAre("1 run failed: the loss is not finite",
                                                           "3 runs skipped: no driver", "1 run pending"));
}

TEST(RunsTable, HasTheSettingsInWhichOnlyRunsWithoutResultsDiffer) {
  SourceRun skipped = made_run({{"lr", 0.1}, {"device", "cuda"}}, "cuda", 1, {});
  skipped.record.status = RunStatus::kSkipped;
  skipped.record.metrics.clear();
  const ReportData data = report_data_of({graded({{"lr", 0.1}, {"device", "cpu"}}, 0.5), skipped});
  EXPECT_THAT(data.keys, IsEmpty());
  const RunsTable table = runs_table(data);
  EXPECT_EQ(table.columns.rows.front().front(), "device");
  EXPECT_EQ(table.cells.rows[0].front(), "cpu");
  EXPECT_EQ(table.cells.rows[1].front(), "cuda");
}

TEST(RunsTable, CallsASettingApartFromAColumnWithItsName) {
  const RunsTable table = runs_table(report_data_of(
      {graded({{"epochs", std::int64_t{2}}}, 0.5), graded({{"epochs", std::int64_t{3}}}, 0.5)}));
  EXPECT_EQ(table.columns.rows[0][0], "param.epochs");
  EXPECT_EQ(table.columns.rows[2][0], "epochs");
}

TEST(ProvenanceRows, TellWhichFilesAndCommitAProgramRan) {
  SourceRun run = graded({{"lr", 0.1}}, 0.5);
  run.record.provenance = {{"program", "sweep"},
                           {"version", "1.0"},
                           {"revision", "abc"},
                           {"compiler", "GNU 12"},
                           {"inputs", {{{"path", "/home/me/train.py"}, {"sha256", "12ab"}}}},
                           {"git", {{"commit", "cd34"}, {"changed", true}}}};
  const ChartTable rows = provenance_rows(report_data_of({run}));
  EXPECT_THAT(rows.rows[0], ElementsAre("Program", "sweep 1.0, revision abc, GNU 12"))
      << "no numerics of its own";
  EXPECT_THAT(rows.rows, Contains(ElementsAre("Input, SHA-256", "12ab  train.py")).Times(1));
  EXPECT_THAT(rows.rows, Contains(ElementsAre("Git commit", "cd34, with the changes of git.diff")).Times(1));
  run.record.provenance = nlohmann::ordered_json::object();
  for (const auto& row : provenance_rows(report_data_of({run})).rows) EXPECT_NE(row[0], "Program");
}

TEST(RunPictures, AreTheNewestOfEachKindWithTheirTexts) {
  const test::TemporaryDirectory directory;
  const tbwriter::EncodedImage first{1, 2, 1, "\x89PNG\r\n\x1a\n first"},
      second{3, 4, 1, "\x89PNG\r\n\x1a\n second"};
  {
    tbwriter::SummaryWriter writer(directory.path());
    writer.add_image("predictions/confusion_matrix", first, 1);
    writer.add_text("predictions/confusion_counts", "| a |", 1);
    writer.add_image("images", first, 0);
    writer.add_image("other", first, 0);
    writer.add_image("predictions/confusion_matrix", second, 2);
    writer.add_text("predictions/confusion_counts", "| b |", 2);
    writer.close();
  }
  EXPECT_EQ(run_pictures(directory.path()), (Json{{{"title", "First batch"},
                                                   {"width", first.width},
                                                   {"height", first.height},
                                                   {"uri", png_uri(first.bytes)},
                                                   {"text", ""}},
                                                  {{"title", "Confusion matrix"},
                                                   {"width", second.width},
                                                   {"height", second.height},
                                                   {"uri", png_uri(second.bytes)},
                                                   {"text", "| b |"}}}));
}

TEST(RunPictures, AreNotMadeOfOtherBytes) {
  const test::TemporaryDirectory directory;
  {
    tbwriter::SummaryWriter writer(directory.path());
    writer.add_image("images", tbwriter::EncodedImage{1, 1, 1, "<svg onload=alert(1)>"}, 0);
    writer.close();
  }
  std::ofstream(directory.path() / "events.out.tfevents.9999999999.damaged") << "no records at all";
  EXPECT_TRUE(run_pictures(directory.path()).empty());
  EXPECT_TRUE(run_pictures(directory.path() / "missing").empty());
}

// The best run of a search in the directory, as a command.
std::string command_of(const RunRecord& record, const char* directory, const Json& file = Json::object()) {
  ReportData data = report_data_of({{"runs/s", record}}, {asked_goal("loss", false)}, true);
  data.directories = {directory};
  data.files = {file};
  data.title = data.directories[0].filename();
  return headline(data).command;
}

TEST(BestCommand, HasTheValuesThatTheRunHad) {
  RunRecord run =
      made_run({{"lr", 0.5}, {"momentum", 0.9}, {"optimizer", "sgd"}, {"network", "mlp"}}, "cpu", 1).record;
  run.config = {{"lr", 0.5},
                {"optimizer", {{"name", "sgd"}, {"momentum", 0.9}}},
                {"network", {{"name", "mlp"}, {"layers", Json::array()}}}};
  EXPECT_EQ(command_of(run, "runs/a b"),
            "sweep 'runs/a b/sweep.json' lr=0.5 momentum=0.9 "
            R"(optimizer=sgd 'network={"name":"mlp","layers":[]}' )"
            "search.trials=1 'name=a b-best'");
}

TEST(BestCommand, KeepsTextsOfProgramsTexts) {
  RunRecord run =
      made_run({{"x.y", 0.5}, {"mode", "fast"}, {"id", "007"}, {"flag", "true"}, {"list", "a,b"}}, "cpu", 1)
          .record;
  run.config["command"] = {"true"};
  for (const auto& [key, value] : run.params)
    run.config["params"][key] = std::visit([](const auto& of_type) { return Json(of_type); }, value);
  EXPECT_EQ(command_of(run, "runs/p"),
            "sweep runs/p/sweep.json params.x.y=0.5 params.mode=fast params.id=007 'params.flag=\"true\"' "
            "'params.list=\"a,b\"' search.trials=1 name=p-best");
  EXPECT_THAT(
      command_of(run, "runs/p", {{"search", {{"points", Json::array()}}}}),
      HasSubstr(R"(search.points=[{"x.y":0.5,"mode":"fast","id":"007","flag":"true","list":"a,b"}])"));
  run.config["lineage"] = Json::array();
  EXPECT_EQ(command_of(run, "runs/p"), "") << "settings of its last epochs only";
}

}  // namespace sweep::page_test
