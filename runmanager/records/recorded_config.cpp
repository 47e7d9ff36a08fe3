#include "runmanager/records/recorded_config.h"

#include <fmt/format.h>

#include <cstdlib>
#include <limits>

#include "core/base/error.h"
#include "runmanager/config/config_reader.h"

namespace sweep {

RunConfig recorded_config(const RunRecord& record) {
  try {
    nlohmann::ordered_json settings = record.config;
    // The only setting that is no key of a sweep file: there it is made of "repeats".
    const auto repeat = settings.at("repeat").get<std::uint32_t>();
    settings.erase("repeat");
    Problems problems;
    // Whether the devices are here is not asked: the record says where it was to train.
    const char* data = std::getenv("SWEEP_DATA");
    const ReadContext context{.directory = {},
                              .data_directory = data != nullptr ? data : "",
                              .cuda_device_count = std::numeric_limits<int>::max()};
    RunConfig config =
        read_run_config(parse_json(settings.dump(), fmt::format("configuration of {}", record.name), false),
                        context, problems);
    problems.throw_if_any();
    config.repeat = repeat;
    config.name = record.name;
    config.params = record.params;
    config.resolved = record.config;
    return config;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: its configuration is not complete: {}", record.name, error.what()));
  } catch (const ConfigError& error) {
    throw DataError(error.what());
  }
}

}  // namespace sweep
