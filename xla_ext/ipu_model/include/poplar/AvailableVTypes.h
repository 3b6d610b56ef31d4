// The layouts of vectors that the chips of the model have.
#pragma once

#define VECTOR_AVAIL_SHORT_SPAN
#define VECTOR_AVAIL_SCALED_PTR32
#define VECTOR_AVAIL_SCALED_PTR64
#define VECTOR_AVAIL_SCALED_PTR128
#define VECTORLIST_AVAIL_DELTAN
