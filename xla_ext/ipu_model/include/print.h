// What the vendor's header of this name gives a codelet: printf.
#pragma once

#include <cstdio>
