#include "core/engine/engine.h"

namespace sweep {

Totals& Totals::operator+=(const Totals& more) {
  loss += more.loss;
  correct += more.correct;
  samples += more.samples;
  ranked += more.ranked;
  in_top += more.in_top;
  numbers += more.numbers;
  absolute_error += more.absolute_error;
  squared_error += more.squared_error;
  return *this;
}

}  // namespace sweep
