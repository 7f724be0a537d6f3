/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_CODEC_H
#define LUATRACE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "error.h"

/*
 * How trace.dat files compress: with libzstd or zlib, each of which a build may be without.
 */
enum codec {
	CODEC_NONE,
	CODEC_ZSTD,
	CODEC_ZLIB,
};

/* By the name in a file. -1: unknown, or this build is without it (the error says which). */
int codec_find(const char *name, enum codec *codec, struct trace_error *error);
const char *codec_name(enum codec codec);
bool codec_is_built(enum codec codec);

/* What one thread needs to decompress; decoder_free() releases it. */
struct decoder;

struct decoder *decoder_create(enum codec codec);
void decoder_free(struct decoder *decoder);

/* The number of bytes, or -1 when @in is damaged or gives more than @room. */
long decoder_run(struct decoder *decoder, const uint8_t *in, size_t length, uint8_t *out,
		 size_t room);

#endif
