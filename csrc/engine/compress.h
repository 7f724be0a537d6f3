/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_COMPRESS_H
#define LUATRACE_COMPRESS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Compressing for trace files with libzstd, which a build may lack. One compressor serves
 * one thread.
 */
struct compressor;

/* NULL when this build has no libzstd, or memory is short. */
struct compressor *compressor_create(void);
void compressor_free(struct compressor *compressor);

/* Can this build compress at all? */
bool compressor_is_there(void);

/* Room that compressing @length bytes may take. */
size_t compressor_bound(size_t length);

/* The bytes that were written, 0 when it failed. */
size_t compressor_run(struct compressor *compressor, void *out, size_t room, const void *bytes,
		      size_t length);

#endif
