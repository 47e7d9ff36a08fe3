// What other programs call directories and tags of their events.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace sweep {

/// What the events of a directory are of: kSession is one of torch's add_hparams(), kSeries one of its
/// add_scalars().
enum class EventsPart { kRun, kTraining, kValidation, kTest, kSession, kSeries };

/// By the name of the directory: Keras writes to "train" and "validation". Never kSeries, which tags tell.
EventsPart part_of(const std::filesystem::path& directory);

/// A key of metrics() that a tag of other programs means: "Loss", "val_acc", "epoch_loss" of the validation.
/// Otherwise the tag, after "validation_" if it is of that part. "" for one of Keras whose steps are batches:
/// mostly they are epochs.
std::string metric_of(const std::string& tag, EventsPart part);

/// The same of a tag in the directory `subdirectory` of a run. add_scalars("loss", {"dev": …}) writes the tag
/// "loss" to "loss_dev", or to "loss/dev" if it is tensorboardX's: both become "loss_dev".
std::string metric_in(const std::filesystem::path& subdirectory, const std::string& tag);

/// The part of `directory` above the folders "/a/b" of the tag "a/b"; nothing if it does not end in these.
/// What tags may not have, such as blanks, is "_" in the tag only.
std::optional<std::string> above_tag(const std::string& directory, const std::string& tag);

}  // namespace sweep
