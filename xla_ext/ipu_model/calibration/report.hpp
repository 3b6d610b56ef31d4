// The tables that `make calibrate` prints: what the model predicts beside what was measured, as Markdown.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace ipu_model::calibration {

struct Row {
  std::string what;
  double predicted = 0;
  // Where the measured value lies: a log that counts whole milliseconds says no more than +-0.5.
  double measured_low = 0, measured_high = 0;

  [[nodiscard]] double measured() const { return (measured_low + measured_high) / 2; }
  // Of the prediction: against the middle, and how far it lies outside (0 inside).
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
  // Of the absolute values of error(), in order, the one so far from the first: 0.5 is the median.
  [[nodiscard]] double errorAt(double share) const;
};

std::ostream& operator<<(std::ostream& out, const Table& table);

}  // namespace ipu_model::calibration
