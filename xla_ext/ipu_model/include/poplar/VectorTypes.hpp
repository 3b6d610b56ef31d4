// Short vectors, as codelets know them: on the IPU types of its compiler, here the vector extension of the host's, with
// the same operators, element access by [] and layout in memory. Names without a namespace, as on the IPU.
//
// They let the vendor's compiler emit 64-bit loads and two or four operations at once. <poplar/Vertex.hpp> does not
// include them: public codelets define types of these names themselves where they are not on an IPU.
#pragma once

#include <poplar/HalfFloat.hpp>

#ifndef __IPU__
using float2 = float __attribute__((vector_size(8)));
using float4 = float __attribute__((vector_size(16)));
using half2 = half __attribute__((vector_size(4)));
using half4 = half __attribute__((vector_size(8)));
using half8 = half __attribute__((vector_size(16)));
using int2 = int __attribute__((vector_size(8)));
using int4 = int __attribute__((vector_size(16)));
using uint2 = unsigned __attribute__((vector_size(8)));
using uint4 = unsigned __attribute__((vector_size(16)));
using long2 = int2;  // a long has 32 bits on the IPU
using long4 = int4;
using ulong2 = uint2;
using ulong4 = uint4;
using short2 = short __attribute__((vector_size(4)));
using short4 = short __attribute__((vector_size(8)));
using ushort2 = unsigned short __attribute__((vector_size(4)));
using ushort4 = unsigned short __attribute__((vector_size(8)));
using char2 = signed char __attribute__((vector_size(2)));
using char4 = signed char __attribute__((vector_size(4)));
using uchar2 = unsigned char __attribute__((vector_size(2)));
using uchar4 = unsigned char __attribute__((vector_size(4)));

// The type of a hardware loop's counter; 16 bits wide from the second chip on.
using rptsize_t = unsigned short;
#endif
