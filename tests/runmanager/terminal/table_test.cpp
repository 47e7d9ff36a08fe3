#include "runmanager/terminal/table.h"

#include "tests/support/test.h"

namespace sweep::table_test {

TextTable times() {
  TextTable table({"lr", "cpu"});
  table.rows = {{"0.01", "1.5 s"}, {"0.001", "12 s"}};
  return table;
}

std::vector<std::string> titles_of(const TextTable& table) {
  std::vector<std::string> titles;
  for (const Column& column : table.columns) titles.push_back(column.title);
  return titles;
}

TEST(TextTable, ACellStaysOnItsLine) {
  TextTable table({"file", "class"}, 2);
  table.rows = {{"a\nb", "cat"}};
  EXPECT_EQ(terminal_table(table, false),
            "  file  class\n"
            "  ----  -----\n"
            "  a\\nb  cat\n");
}

TEST(TextTable, TextIsLeftAndNumbersAreRightAligned) {
  EXPECT_EQ(terminal_table(times(), false),
            "  lr       cpu\n"
            "  -----  -----\n"
            "  0.01   1.5 s\n"
            "  0.001   12 s\n");
}

TEST(TextTable, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(terminal_table(TextTable({"\x1b[2J"}), false).find('\x1b'), std::string::npos);
}

TEST(TextTable, FitsByLeavingOutTheLeastImportantAndOfThoseTheWidestColumns) {
  TextTable table;
  table.columns = {{.title = "needed"},
                   {.title = "wide column", .importance = 10},
                   {.title = "thin", .importance = 10},
                   {.title = "more", .importance = 20}};
  table.rows = {{"1", "2", "3", "4"}};
  TextTable same = table;
  EXPECT_THAT(same.fit(100), ElementsAre());
  EXPECT_THAT(table.fit(20), ElementsAre("wide column"));
  EXPECT_THAT(titles_of(table), ElementsAre("needed", "thin", "more"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "3", "4")));
  EXPECT_THAT(table.fit(1), ElementsAre("thin", "more")) << "what is needed stays";
}

TEST(TextTable, KeepsWhatFitsAfterAllOnceAWiderColumnIsGone) {
  TextTable table;
  table.columns = {{.title = "needed"},
                   {.title = "a", .importance = 10},
                   {.title = "a very wide column", .importance = 20}};
  EXPECT_THAT(table.fit(12), ElementsAre("a very wide column"));
}

TEST(TextTable, DropsColumnsWithoutAnyCell) {
  TextTable table({"a", "b", "c"});
  table.rows = {{"1", "", "2"}, {"3"}};
  table.drop_empty_columns();
  EXPECT_THAT(titles_of(table), ElementsAre("a", "c"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("1", "2"), ElementsAre("3")));
}

TEST(TextTable, PrintsItselfInEveryFormat) {
  TextTable table = times();
  table.columns[1].key = "seconds,cpu";
  EXPECT_EQ(formatted_table(table, TableFormat::kText, true), terminal_table(table, true));
  EXPECT_EQ(formatted_table(table, TableFormat::kCsv, true), "lr,\"seconds,cpu\"\n0.01,1.5 s\n0.001,12 s\n");
  EXPECT_EQ(formatted_table(table, TableFormat::kMarkdown, true),
            "| lr | cpu |\n| --- | --- |\n| 0.01 | 1.5 s |\n| 0.001 | 12 s |\n");
  EXPECT_EQ(formatted_table(table, TableFormat::kLatex, true),
            "\\begin{tabular}{lr}\n  \\toprule\n  lr & cpu \\\\\n  \\midrule\n"
            "  0.01 & 1.5 s \\\\\n  0.001 & 12 s \\\\\n  \\bottomrule\n\\end{tabular}\n");
}

TEST(TextTable, LatexShowsItsOwnCharactersAsTheyAre) {
  EXPECT_EQ(latex_text("a_b & 50% ~ {x} \\y ^2 #1 $"),
            "a\\_b \\& 50\\% \\textasciitilde{} \\{x\\} \\textbackslash{}y \\textasciicircum{}2 \\#1 \\$");
  EXPECT_EQ(latex_text("[1,2] *"), "{[}1,2] {*}") << "not the options of \\\\ in front";
  EXPECT_EQ(latex_text("<a|b>"), "\\textless{}a\\textbar{}b\\textgreater{}");
  EXPECT_EQ(latex_text("a\n\nb"), "a\\textbackslash{}n\\textbackslash{}nb");
}

}  // namespace sweep::table_test
