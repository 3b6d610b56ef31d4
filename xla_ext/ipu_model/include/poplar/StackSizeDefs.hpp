// How much stack a function needs, told to the vendor's linker. The host's stack is large enough, so these do nothing.
#pragma once

#define DEF_STACK_USAGE(bytes, function) static_assert(true)
#define DEF_STACK_SIZE_OWN(bytes, function) static_assert(true)
#define DEF_FUNC_CALL_PTRS(caller, callees) static_assert(true)
