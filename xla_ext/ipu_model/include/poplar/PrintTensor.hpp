// How PrintTensor writes the elements of a tensor.
#pragma once

namespace poplar {

class PrintTensorFmt {
 public:
  // Auto: Fixed, and Scientific where that shows too little of the numbers. None: as a stream writes them.
  enum class FloatFormat { Auto = 0, Fixed = 1, Scientific = 2, None = 3 };

  // Tensors of more elements than `threshold` show `edge_items` at both ends of each dimension. Lines end before
  // `line_width`. A number has `number_digits`, those before its point included, and all have one width; 0: as they
  // come.
  PrintTensorFmt(unsigned threshold = 1000, unsigned edge_items = 3, unsigned line_width = 75,
                 unsigned number_digits = 8, FloatFormat format = FloatFormat::Auto, char between = ' ',
                 char open = '[', char close = ']')
      : summariseThreshold(threshold),
        edgeItems(edge_items),
        maxLineWidth(line_width),
        digits(number_digits),
        floatFormat(format),
        separator(between),
        openBracket(open),
        closeBracket(close) {}

  unsigned summariseThreshold, edgeItems, maxLineWidth, digits;
  FloatFormat floatFormat;
  char separator, openBracket, closeBracket;
};

}  // namespace poplar
