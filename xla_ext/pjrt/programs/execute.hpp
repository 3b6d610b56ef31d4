// Runs of programs.
#pragma once

namespace snnjax::pjrt {

class Table;
void addExecuteFunctions(Table& table);

}  // namespace snnjax::pjrt
