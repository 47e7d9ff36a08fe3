#include "runmanager/terminal/text_table.h"

#include <gtest/gtest.h>

namespace sweep {
namespace {

const TextTable kTable = {{"lr", "cpu"}, {{"0.01", "1.5 s"}, {"0.001", "12 s"}}, 1};

TEST(TextTable, TextIsLeftAndNumbersAreRightAligned) {
  EXPECT_EQ(terminal_table(kTable, false),
            "  lr       cpu\n"
            "  -----  -----\n"
            "  0.01   1.5 s\n"
            "  0.001   12 s\n");
}

TEST(TextTable, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(terminal_table({{"\x1b[2J"}, {}, 1}, false).find('\x1b'), std::string::npos);
}

TEST(TextTable, LatexIsATabularOfBooktabs) {
  EXPECT_EQ(latex_table(kTable),
            "\\begin{tabular}{lr}\n  \\toprule\n  lr & cpu \\\\\n  \\midrule\n"
            "  0.01 & 1.5 s \\\\\n  0.001 & 12 s \\\\\n  \\bottomrule\n\\end{tabular}\n");
}

TEST(TextTable, LatexShowsItsOwnCharactersAsTheyAre) {
  EXPECT_EQ(latex_text("a_b & 50% ~ {x} \\y ^2 #1 $"),
            "a\\_b \\& 50\\% \\textasciitilde{} \\{x\\} \\textbackslash{}y \\textasciicircum{}2 \\#1 \\$");
}

}  // namespace
}  // namespace sweep
