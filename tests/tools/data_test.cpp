// The program's `data`: getting known data sets and describing data, by output and exit codes.

#include "tests/support/data_files.h"
#include "tests/support/program_folder.h"

namespace sweep::testing::data_test {

class Data : public ProgramFolder {
 protected:
  const test::Environment data_{"SWEEP_DATA", nullptr};
};

TEST_F(Data, GetsASetThatASweepThenFinds) {
  if (!fs::exists("/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz"))
    GTEST_SKIP() << "Fashion-MNIST is not installed; apt-get install dataset-fashion-mnist";
  const test::Environment mirror("SWEEP_DATA_MIRROR", "file:///usr/share/datasets");
  const std::string place = path("cache/sweep/fashion-mnist").string();
  const Finished first = run({"data", "get", "fashion-mnist"});
  EXPECT_EQ(first.out,
            "fashion-mnist is in " + place + ": 60000 samples [1, 28, 28] of uint8, 10000 to test\n");
  EXPECT_EQ(first.err, "");
  EXPECT_EQ(run({"data", "get", "fashion-mnist"}).out, "fashion-mnist is there already: " + place + "\n");
  EXPECT_EQ(std::distance(fs::directory_iterator(place), fs::directory_iterator()), 4);

  // What is damaged is fetched again. (The name finds the copy of Debian first.)
  folder_.write("cache/sweep/fashion-mnist/t10k-labels-idx1-ubyte.gz", "damaged");
  run({"data", place}, 2);
  EXPECT_EQ(run({"data", "get", "fashion-mnist"}).out, first.out);
  run({"data", place});
}

TEST_F(Data, SaysWhatItCannotGet) {
  EXPECT_THAT(
      run({"data", "get", "minst"}, 2).err,
      HasSubstr("data get: got \"minst\", want fashion-mnist, mnist, cifar10 or cifar100, did you mean "
                "\"mnist\"?"));
  run({"data", "get"}, 2);
  EXPECT_THAT(run({"data", "get", "mnist", "--json"}, 2).err, HasSubstr("data get: prints a line of text"));
  EXPECT_THAT(run({"data", "clean", "--format", "csv"}, 2).err, HasSubstr("data clean: prints a line"));
  EXPECT_THAT(run({"data"}, 2).err, HasSubstr("a file or a name is needed: sweep data SWEEP.json"));
  {
    const test::Environment mirror("SWEEP_DATA_MIRROR", "file:///nowhere");
    EXPECT_EQ(run({"data", "get", "mnist"}, 2).err,
              "sweep: file:///nowhere/mnist/train-images-idx3-ubyte.gz: there is no such file, or it "
              "cannot be read\n");
  }
  const test::Environment mirror("SWEEP_DATA_MIRROR", "file:///usr/share/datasets");
  const test::Environment cache("XDG_CACHE_HOME", "/proc");
  EXPECT_THAT(run({"data", "get", "fashion-mnist"}, 3).err,
              StartsWith("sweep: /proc/sweep: cannot make this directory: "));
}

TEST_F(Data, ASweepThatLacksItOffersToGetItAndYesDoes) {
  const test::Environment data("SWEEP_DATA", folder_.path().string());
  const test::Environment mirror("SWEEP_DATA_MIRROR", "file:///nowhere");
  folder_.write("s.json", R"({"dataset": "mnist", "network": "net.json"})");
  EXPECT_THAT(run({"s.json"}, 2).err,
              HasSubstr("To get it, run `sweep data get mnist`, or train with --yes"));
  EXPECT_EQ(run({"s.json", "--yes"}, 2).err,
            "sweep: file:///nowhere/mnist/train-images-idx3-ubyte.gz: there is no such file, or it cannot be "
            "read\n");
  // A path is the person's own.
  EXPECT_THAT(run({"s.json", "dataset={\"name\":\"mnist\",\"path\":\"gone\"}", "--yes"}, 2).err,
              HasSubstr("gone: "));
}

TEST_F(Data, DescribesWhatASweepFileReads) {
  // Classes 0, 1, 2, 0, …; the last four validate.
  folder_.write("data/train-images-idx3-ubyte", test::idx({12, 2, 3}, test::some_bytes(72)));
  folder_.write("data/train-labels-idx1-ubyte", test::idx({12}, std::string("\0\1\2\0\1\2\0\1\2\0\0\0", 12)));
  folder_.write("s.json",
                R"({"dataset": {"name": "own", "path": "data", "validation": 4}, "network": "net.json",
                              "params": {"lr": [0.1, 0.01]}})");
  EXPECT_THAT(run({"data", "s.json"}).out,
              AllOf(HasSubstr("own: idx in "), HasSubstr("/data\nsamples [1, 2, 3] of uint8, 120 B in"),
                    HasSubstr("class  train  validation\n"), HasSubstr("  0          3           3\n"),
                    HasSubstr("  1          3           0\n"), HasSubstr("  2          2           1\n"),
                    HasSubstr("  all        8           4\n")));
  // Runs with one data set show it once; an axis over it shows each.
  const auto sets = output({"data", "s.json", "dataset.validation=4,6"}).at("datasets");
  ASSERT_EQ(sets.size(), 2u);
  EXPECT_EQ(sets[0].at("format"), "idx");
  EXPECT_EQ(sets[0].at("memory_bytes"), 72 + 12 * 4);
  EXPECT_EQ(sets[0].at("parts")[0], json::parse(R"({"part": "train", "samples": 8,
                                                              "classes": {"0": 3, "1": 3, "2": 2}})"));
  EXPECT_EQ(sets[1].at("parts")[1].at("classes").at("0"), 4);
  EXPECT_EQ(sets[0].at("files").size(), 2u);
  EXPECT_EQ(sets[0].at("skipped").size(), 0u);
}

TEST_F(Data, DescribesATableOfNumbers) {
  folder_.write("t.csv", "a,b,target\n1,5,2\n2,5,4\n3,5,6\n4,5,8\n");
  const Finished text = run({"data", "t.csv"});
  // The mean of 2, 4, 6 and 8 is 5, the mean square of the differences 5.
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("t: csv in t.csv\nsamples [2] of float32"), HasSubstr("2 features: a, b\n"),
                    HasSubstr("  target  train        4     5    2.23607\n")));
  EXPECT_EQ(run({"data", "t.csv", "--format", "csv"}).out,
            "target,part,samples,mean,deviation\ntarget,train,4,5,2.23606797749979\n")
      << "all digits, as JSON has them";
  run({"data", "t.csv", "lr=1"}, 2);
  run({"data", "nowhere.csv"}, 2);
}

TEST_F(Data, PrintsItsTablesForProgramsAndPapers) {
  folder_.write("table.csv", "a,class\n1,x\n2,y\n3,x\n4,y\n");
  const auto as = [&](const char* format) {
    return run({"data", "table.csv", "label=class", "--format", format}).out;
  };
  EXPECT_EQ(as("csv"), "class,train\nx,2\ny,2\nall,4\n");
  EXPECT_EQ(as("markdown"), "| class | train |\n| --- | --- |\n| x | 2 |\n| y | 2 |\n| all | 4 |\n");
}

TEST_F(Data, TakesKeysOfADataSetAfterAPath) {
  std::string header = "bought", row = "yes";
  for (int i = 0; i < 20; ++i) {
    header += ";f" + std::to_string(i);
    row += ";1," + std::to_string(i);
  }
  folder_.write("t.csv", header + "\n" + row + "\n" + row + "\n");
  run({"data", "t.csv"}, 2);  // It has no label.
  EXPECT_THAT(run({"data", "t.csv", "label=bought"}).out,
              AllOf(HasSubstr("20 features: f0, f1, f2, f3, f4, f5, f6, f7, f8, f9, f10, f11, …\n"),
                    HasSubstr("numbers with a decimal comma are in \"f0\", ")));
  const auto described = output({"data", "t.csv", "dataset.label=bought"});
  EXPECT_EQ(described.at("datasets")[0].at("dataset").at("label"), "bought");
  EXPECT_EQ(described.at("datasets")[0].at("dataset").at("name"), "t");
}

}  // namespace sweep::testing::data_test
