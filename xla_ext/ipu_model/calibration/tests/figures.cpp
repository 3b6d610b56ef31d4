// The calibration holds: what the model predicts of others' programs stays as close to the measurements as README.md
// says. tests/ipu/test_calibration.py holds our own training step.
#include <algorithm>

#include "calibration/dense_products.hpp"
#include "calibration/exchange_phases.hpp"
#include "calibration/hardware_log.hpp"
#include "calibration/matrix_vector.hpp"
#include "check.hpp"

namespace {

using namespace ipu_model::calibration;

void checkWithin(const Table& table, double bound) {
  for (const Row& row : table.rows) {
    check::that(std::abs(row.error()) <= bound, "error within bound", __FILE__, __LINE__,
                row.what + ": " + std::to_string(row.error()));
  }
}

void testMatrixVector() {
  const Table table = matrixVector();
  CHECK_EQUAL(table.rows.size(), 2U);
  CHECK(std::abs(table.rows[0].error()) < 0.01);  // compute
  CHECK(std::abs(table.rows[1].error()) < 0.02);  // exchange
}

void testExchange() {
  checkWithin(exchangePhases(), 0.06);
  checkWithin(isolatedTransfers(), 0);
}

// Those that run in no time: 2048 x 2048 and 4096 x 4096, by few columns.
void testDenseProducts() {
  for (const bool halves : {false, true}) {
    const Table table = denseProducts(halves, 3e8);
    CHECK(table.rows.size() >= 5);
    CHECK(table.errorAt(0.5) < 0.2);
    checkWithin(table, 0.4);
  }
}

void testPublishedSteps() {
  const Table bow = publishedSteps(ipu_model::chipNamed("bow"), 1),
              mk2 = publishedSteps(ipu_model::chipNamed("mk2"), 1);
  CHECK(bow.meanError() < 0.2);
  CHECK(bow.meanError() < mk2.meanError());
  // More activity never takes less time; cells() has the four networks of one activity after those of a lower one.
  for (std::size_t i = 4; i < bow.rows.size(); ++i) CHECK(bow.rows[i].predicted >= bow.rows[i - 4].predicted);
}

}  // namespace

int main() {
  testMatrixVector();
  testExchange();
  testDenseProducts();
  testPublishedSteps();
  return check::failures;
}
