// The names of vertices, which C++ can spell in more than one way.
#pragma once

#include <string>
#include <string_view>

namespace ipu_model {

// One spelling for each: no space that is not needed, "unsigned int" for "unsigned", no unnamed namespace, and "half"
// for the host's type of that size. "Foo< unsigned,::half, 3u >" gives "Foo<unsigned int,half,3>".
std::string normalVertexName(std::string_view name);

}  // namespace ipu_model
