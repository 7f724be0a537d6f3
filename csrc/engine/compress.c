/* SPDX-License-Identifier: MIT */
#include "compress.h"

#ifdef HAVE_ZSTD
#include <zstd.h>

/* What the library itself recommends: pages of a trace shrink to a sixth. */
#define LEVEL 3

/* The public name of what libzstd calls a context; nothing but a cast is between them. */
struct compressor *compressor_create(void)
{
	return (struct compressor *)ZSTD_createCCtx();
}

void compressor_free(struct compressor *compressor)
{
	ZSTD_freeCCtx((ZSTD_CCtx *)compressor);
}

bool compressor_is_there(void)
{
	return true;
}

size_t compressor_bound(size_t length)
{
	return ZSTD_compressBound(length);
}

size_t compressor_run(struct compressor *compressor, void *out, size_t room, const void *bytes,
		      size_t length)
{
	size_t size = ZSTD_compressCCtx((ZSTD_CCtx *)compressor, out, room, bytes, length, LEVEL);

	return ZSTD_isError(size) ? 0 : size;
}

#else

struct compressor *compressor_create(void)
{
	return NULL;
}

void compressor_free(struct compressor *compressor)
{
	(void)compressor;
}

bool compressor_is_there(void)
{
	return false;
}

size_t compressor_bound(size_t length)
{
	return length;
}

size_t compressor_run(struct compressor *compressor, void *out, size_t room, const void *bytes,
		      size_t length)
{
	(void)compressor;
	(void)out;
	(void)room;
	(void)bytes;
	(void)length;
	return 0;
}

#endif
