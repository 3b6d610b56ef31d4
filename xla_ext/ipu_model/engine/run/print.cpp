// PrintTensor: nested brackets, numbers of one width, as the vendor's tutorials show them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <ostream>
#include <sstream>

#include "engine/run/engine_data.hpp"
#include "graph/half_bits.hpp"

namespace ipu_model {
namespace {

using FloatFormat = poplar::PrintTensorFmt::FloatFormat;
using Kind = poplar::Type::Kind;

template <typename T>
T valueAt(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

bool isFloat(const poplar::Type& type) { return type == poplar::FLOAT || type == poplar::HALF; }

float floatAt(const poplar::Type& type, const std::byte* at) {
  return type == poplar::FLOAT ? valueAt<float>(at) : halfToFloat(valueAt<std::uint16_t>(at));
}

std::string integerText(const poplar::Type& type, const std::byte* at) {
  switch (type.kind()) {
    case Kind::Bool: return valueAt<std::uint8_t>(at) != 0 ? "1" : "0";
    case Kind::Short: return std::to_string(valueAt<std::int16_t>(at));
    case Kind::UnsignedShort: return std::to_string(valueAt<std::uint16_t>(at));
    case Kind::UnsignedInt:
    case Kind::UnsignedLong: return std::to_string(valueAt<std::uint32_t>(at));
    case Kind::LongLong: return std::to_string(valueAt<std::int64_t>(at));
    case Kind::UnsignedLongLong: return std::to_string(valueAt<std::uint64_t>(at));
    case Kind::Char:
    case Kind::SignedChar: return std::to_string(valueAt<std::int8_t>(at));
    case Kind::UnsignedChar:
    case Kind::Quarter: return std::to_string(valueAt<std::uint8_t>(at));
    default: return std::to_string(valueAt<std::int32_t>(at));
  }
}

// A stream that writes floats of this range as the format says.
std::ostringstream floatStream(const poplar::PrintTensorFmt& format, float least, float most) {
  constexpr float kLeastFixed = 1e-4F;  // below, a number of eight digits shows fewer than four that count
  std::ostringstream stream;
  const int before = most < 1 ? 1 : static_cast<int>(std::log10(most)) + 1;
  const int digits = static_cast<int>(format.digits);
  const bool hard = before > digits || least < kLeastFixed;
  if (format.floatFormat == FloatFormat::None || digits == 0) return stream;
  if (format.floatFormat == FloatFormat::Scientific || (format.floatFormat == FloatFormat::Auto && hard)) {
    stream << std::scientific << std::setprecision(std::max(digits - 1, 0));
  } else {
    stream << std::fixed << std::setprecision(std::max(digits - before, 0));
  }
  return stream;
}

class Printer {
 public:
  Printer(const StepPrint& print, std::span<const std::byte> values, std::ostream& stream)
      : print_(print), values_(values), stream_(stream), count_(values.size() / print.type.size()) {
    const std::size_t edge = print.format.edgeItems;
    summarised_ = count_ > print.format.summariseThreshold && edge > 0;
    if (isFloat(print.type)) {
      float least = INFINITY, most = 0;
      for (std::size_t i = 0; i < count_; ++i) {
        const float size = std::abs(floatAt(print.type, at(i)));
        if (std::isfinite(size)) most = std::max(most, size);
        if (size > 0) least = std::min(least, size);
      }
      floats_ = floatStream(print.format, least, most);
    }
  }

  // The brackets of a dimension, whose elements begin at `first`. Without a width, texts are measured and not written.
  void dimension(std::size_t number, std::size_t first) {
    if (number == print_.shape.size()) return element(first);
    const std::size_t size = print_.shape[number], edge = print_.format.edgeItems;
    std::size_t stride = 1;
    for (std::size_t inner = number + 1; inner < print_.shape.size(); ++inner) stride *= print_.shape[inner];
    put(std::string(1, print_.format.openBracket));
    for (std::size_t i = 0; i < size; ++i) {
      const bool left_out = summarised_ && size > 2 * edge && i == edge;
      if (i > 0) separate(number);
      if (left_out) {
        put("...");
        separate(number);
        i = size - edge;
      }
      dimension(number + 1, first + i * stride);
    }
    put(std::string(1, print_.format.closeBracket));
  }

  void print() {
    dimension(0, 0);
    measured_ = true;
    if (print_.format.digits == 0) width_ = 0;
    dimension(0, 0);
  }

 private:
  const std::byte* at(std::size_t index) const { return values_.data() + index * print_.type.size(); }

  void element(std::size_t index) {
    std::string text;
    if (isFloat(print_.type)) {
      floats_.str("");
      floats_ << floatAt(print_.type, at(index));
      text = floats_.str();
    } else {
      text = integerText(print_.type, at(index));
    }
    if (!measured_) {
      width_ = std::max(width_, text.size());
    } else {
      put(std::string(width_ - std::min(width_, text.size()), ' ') + text);
    }
  }

  // Rows stand below each other, behind as many brackets as hold them.
  void separate(std::size_t number) {
    const bool rows = number + 1 < print_.shape.size();
    const bool full = column_ + 1 + width_ > print_.format.maxLineWidth;
    if (!measured_) return;
    if (!rows && !full) return put(std::string(1, print_.format.separator));
    stream_ << '\n';
    column_ = 0;
    put(std::string(number + 1, ' '));
  }

  void put(const std::string& text) {
    if (!measured_) return;
    stream_ << text;
    column_ += text.size();
  }

  const StepPrint& print_;
  std::span<const std::byte> values_;
  std::ostream& stream_;
  std::size_t count_, width_ = 0, column_ = 0;
  bool summarised_ = false, measured_ = false;
  std::ostringstream floats_;
};

}  // namespace

void printTensor(const StepPrint& print, std::span<const std::byte> values, std::ostream& stream) {
  stream << print.title << ": ";
  Printer(print, values, stream).print();
  stream << '\n';
}

}  // namespace ipu_model
