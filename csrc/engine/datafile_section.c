/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "datafile_state.h"

/* Version 7's sections: a header of 16 bytes, then the content, which may be compressed. */

#define SECTION_COMPRESSED 1

/* All the symbols of a kernel are below 20 MiB; a file that says more is not believed. */
#define SECTION_MAX (UINT32_C(256) << 20)

int section_find(struct datafile *file, uint64_t offset, struct section *section,
		 struct trace_error *error)
{
	struct cursor cursor;

	cursor_open_file(&cursor, file->fd, offset, file->size, file->swap);
	section->id = cursor_u16(&cursor);
	section->is_compressed = cursor_u16(&cursor) & SECTION_COMPRESSED;
	cursor_u32(&cursor); /* what it is called */
	section->size = cursor_u64(&cursor);
	section->offset = cursor.at;
	cursor_close(&cursor);
	if (cursor.failed)
		return error_set(error, EINVAL, "no section at byte %" PRIu64 " of %" PRIu64,
				 offset, file->size);
	return 0;
}

static int decompress(struct datafile *file, uint64_t at, uint8_t **memory, uint32_t *length,
		      struct trace_error *error)
{
	struct cursor cursor;
	uint32_t packed;
	uint8_t *in, *out;
	long got;

	cursor_open_file(&cursor, file->fd, at, file->size, file->swap);
	packed = cursor_u32(&cursor);
	*length = cursor_u32(&cursor);
	if (cursor.failed || packed > file->size - cursor.at || *length > SECTION_MAX) {
		cursor_close(&cursor);
		return error_set(error, EINVAL,
				 "the compressed section at byte %" PRIu64 " is cut or damaged",
				 at);
	}
	in = malloc((size_t)packed + 1);
	out = malloc((size_t)*length + 1);
	if (!in || !out) {
		error_set(error, ENOMEM, "out of memory");
		goto fail;
	}
	cursor_bytes(&cursor, in, packed);
	got = cursor.failed ? -1 : decoder_run(file->decoder, in, packed, out, *length);
	if (got < 0 || (uint32_t)got != *length) {
		error_set(error, EINVAL, "the compressed section at byte %" PRIu64 " is damaged",
			  at);
		goto fail;
	}
	cursor_close(&cursor);
	free(in);
	*memory = out;
	return 0;

fail:
	cursor_close(&cursor);
	free(in);
	free(out);
	return -1;
}

int section_open(struct datafile *file, const struct section *section, struct cursor *cursor,
		 uint8_t **memory, struct trace_error *error)
{
	uint32_t length;

	*memory = NULL;
	if (!section->is_compressed) {
		uint64_t room = file->size - section->offset;

		cursor_open_file(cursor, file->fd, section->offset,
				 section->offset + (section->size < room ? section->size : room),
				 file->swap);
		return 0;
	}
	if (decompress(file, section->offset, memory, &length, error) < 0)
		return -1;
	cursor_open_memory(cursor, *memory, length, file->swap);
	return 0;
}
