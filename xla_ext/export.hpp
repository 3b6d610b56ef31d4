// Marks what a library for Python exports: the names that Python looks up.
#pragma once

#if defined(_WIN32)
#define SNNJAX_EXPORT __declspec(dllexport)
#else
#define SNNJAX_EXPORT __attribute__((visibility("default")))
#endif
