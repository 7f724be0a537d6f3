/* SPDX-License-Identifier: MIT */
#include "codec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef HAVE_ZLIB
#include <zlib.h>
#endif

struct decoder {
	enum codec codec;
#ifdef HAVE_ZSTD
	ZSTD_DCtx *zstd;
#endif
};

static const struct {
	const char *name;
	const char *library;
	bool is_built;
} codecs[] = {
	[CODEC_NONE] = { "none", NULL, true },
#ifdef HAVE_ZSTD
	[CODEC_ZSTD] = { "zstd", "libzstd", true },
#else
	[CODEC_ZSTD] = { "zstd", "libzstd", false },
#endif
#ifdef HAVE_ZLIB
	[CODEC_ZLIB] = { "zlib", "zlib", true },
#else
	[CODEC_ZLIB] = { "zlib", "zlib", false },
#endif
};

const char *codec_name(enum codec codec)
{
	return codecs[codec].name;
}

bool codec_is_built(enum codec codec)
{
	return codecs[codec].is_built;
}

int codec_find(const char *name, enum codec *codec, struct trace_error *error)
{
	for (unsigned int i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
		if (strcmp(name, codecs[i].name) != 0)
			continue;
		if (!codecs[i].is_built)
			return error_set(error, ENOTSUP,
					 "it is compressed with %s, and this luatrace was built "
					 "without that: install %s with its header (Debian: %s) "
					 "and build again",
					 name, codecs[i].library,
					 i == CODEC_ZSTD ? "libzstd-dev" : "zlib1g-dev");
		*codec = (enum codec)i;
		return 0;
	}
	return error_set(error, ENOTSUP,
			 "it is compressed with \"%.32s\"; known are none, zstd and zlib", name);
}

struct decoder *decoder_create(enum codec codec)
{
	struct decoder *decoder = calloc(1, sizeof(*decoder));

	if (!decoder)
		return NULL;
	decoder->codec = codec;
#ifdef HAVE_ZSTD
	if (codec == CODEC_ZSTD) {
		decoder->zstd = ZSTD_createDCtx();
		if (!decoder->zstd) {
			free(decoder);
			return NULL;
		}
	}
#endif
	return decoder;
}

void decoder_free(struct decoder *decoder)
{
	if (!decoder)
		return;
#ifdef HAVE_ZSTD
	ZSTD_freeDCtx(decoder->zstd);
#endif
	free(decoder);
}

#ifdef HAVE_ZSTD
static long run_zstd(struct decoder *decoder, const uint8_t *in, size_t length, uint8_t *out,
		     size_t room)
{
	size_t got = ZSTD_decompressDCtx(decoder->zstd, out, room, in, length);

	return ZSTD_isError(got) || got > LONG_MAX ? -1 : (long)got;
}
#endif

#ifdef HAVE_ZLIB
static long run_zlib(const uint8_t *in, size_t length, uint8_t *out, size_t room)
{
	uLongf got = room;

	return uncompress(out, &got, in, length) == Z_OK ? (long)got : -1;
}
#endif

long decoder_run(struct decoder *decoder, const uint8_t *in, size_t length, uint8_t *out,
		 size_t room)
{
	switch (decoder->codec) {
#ifdef HAVE_ZSTD
	case CODEC_ZSTD:
		return run_zstd(decoder, in, length, out, room);
#endif
#ifdef HAVE_ZLIB
	case CODEC_ZLIB:
		return run_zlib(in, length, out, room);
#endif
	default:
		if (length > room)
			return -1;
		memcpy(out, in, length);
		return (long)length;
	}
}
