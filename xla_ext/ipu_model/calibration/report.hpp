// The tables that `make calibrate` prints: predictions beside measurements, as Markdown.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace ipu_model::calibration {

struct Row {
  std::string what;
  double predicted = 0;
  // The interval of the measured value: a log in whole milliseconds is only good to +-0.5.
  double measured_low = 0, measured_high = 0;

  [[nodiscard]] double measured() const { return (measured_low + measured_high) / 2; }
  // Errors of the prediction: against the middle, and outside the interval (0 inside).
  [[nodiscard]] double error() const { return predicted / measured() - 1; }
  [[nodiscard]] double errorOutside() const;
};

Row exactly(std::string what, double predicted, double measured);

struct Table {
  std::string title;  // with what is assumed
  std::string unit;
  int decimals = 0;
  std::vector<Row> rows;

  // Of the absolute values of error(), and of errorOutside().
  [[nodiscard]] double meanError() const;
  [[nodiscard]] double meanErrorOutside() const;
  // The quantile of the absolute values of error(): 0.5 is the median.
  [[nodiscard]] double errorAt(double share) const;
};

std::ostream& operator<<(std::ostream& out, const Table& table);

}  // namespace ipu_model::calibration
