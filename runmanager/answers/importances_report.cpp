#include "runmanager/answers/importances_report.h"

#include <fmt/format.h>

#include "runmanager/answers/statistics_text.h"
#include "runmanager/text/json_output.h"

namespace sweep {

using Json = nlohmann::ordered_json;

TextTable importances_table(const Importances& importances, TableFormat format) {
  const bool is_plain = format == TableFormat::kCsv;
  TextTable table({"setting", "best trials have", "importance", "trials", "by chance"}, 2);
  for (const Importance& setting : importances.settings)
    table.rows.push_back({setting.key, setting.best,
                          is_plain ? fmt::format("{}", setting.share) : share_text(setting.share),
                          std::to_string(setting.trials), setting.may_be_chance ? "maybe" : "no"});
  return table;
}

std::string importances_text(const Importances& importances, bool unicode) {
  return fmt::format("Importance of settings for the {}, by PED-ANOVA, of {} trials that have ended\n\n",
                     goal_text({importances.goal}), importances.trials) +
         terminal_table(importances_table(importances, TableFormat::kText), unicode) +
         fmt::format(
             "\nimportance: how far the values of the best {} trials differ from those of all, as a share of "
             "all settings. by chance: whether a setting without influence may come as far.\n",
             importances.best);
}

Json importances_json(const Importances& importances) {
  Json json = {{"metric", importances.goal.metric->key},
               {"larger_is_better", importances.goal.largest_is_best},
               {"method", "PED-ANOVA"},
               {"trials", importances.trials},
               {"best", importances.best},
               {"importances", Json::array()}};
  for (const Importance& setting : importances.settings)
    json["importances"].push_back({{"key", setting.key},
                                   {"share", json_number(setting.share)},
                                   {"divergence", json_number(setting.divergence)},
                                   {"may_be_chance", setting.may_be_chance},
                                   {"trials", setting.trials},
                                   {"best", setting.best}});
  return json;
}

}  // namespace sweep
