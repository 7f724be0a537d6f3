/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "datafile_state.h"

/* Version 7: sections anywhere, found through a chain of sections of options. */

/* A file in real life has two or three; a chain that bites its tail has no end. */
#define CHAIN_MAX 1024

/* The options of one section; returns where the next one is in @next, 0: nowhere. */
static int take_options(struct datafile *file, struct cursor *cursor, uint64_t *next,
			struct trace_error *error)
{
	*next = 0;
	for (;;) {
		uint16_t id = cursor_u16(cursor);
		uint32_t size = cursor_u32(cursor);

		if (cursor->failed)
			return 0;
		if (id == OPTION_DONE) {
			if (size >= 8)
				*next = cursor_u64(cursor);
			return 0;
		}
		if (datafile_read_option(file, id, size, cursor, error) < 0)
			return -1;
	}
}

static int read_options(struct datafile *file, uint64_t offset, struct trace_error *error)
{
	struct trace_error why;
	uint64_t taken = 0;

	for (unsigned int i = 0; offset; i++) {
		struct section section;
		struct cursor cursor;
		uint8_t *memory;
		uint64_t next, start;
		int result;

		if (i == CHAIN_MAX || taken > DATAFILE_OPTIONS_MAX) {
			datafile_note_damage(file, offset, "its sections of options have no end");
			return 0;
		}
		if (section_find(file, offset, &section, &why) < 0 ||
		    section_open(file, &section, &cursor, &memory, &why) < 0) {
			datafile_note_damage(file, offset, "%.200s", why.message);
			return 0;
		}
		start = cursor.at;
		if (section.id != OPTION_DONE) {
			datafile_note_damage(file, offset, "no section of options");
			next = 0;
			result = 0;
		} else {
			result = take_options(file, &cursor, &next, error);
		}
		if (cursor.failed)
			datafile_note_damage(file, offset, "a section of options is cut");
		taken += memory ? cursor.end : cursor.at - start;
		cursor_close(&cursor);
		free(memory);
		if (result < 0)
			return -1;
		offset = next;
	}
	return 0;
}

typedef int (*section_reader)(struct datafile *file, struct cursor *cursor,
			      struct trace_error *error);

/* Memory that a section was decompressed into is kept where @keep is given. */
static int read_section(struct datafile *file, uint64_t offset, const char *what,
			section_reader reader, uint8_t **keep, size_t *keep_length,
			struct trace_error *error)
{
	struct section section;
	struct trace_error why;
	struct cursor cursor;
	uint8_t *memory;
	int result;

	if (!offset || section_find(file, offset, &section, &why) < 0 ||
	    section_open(file, &section, &cursor, &memory, &why) < 0)
		return error_set(error, EINVAL,
				 "%s is truncated, damaged or still being written: %s of the %s "
				 "(%" PRIu64 " bytes); no record of it can be read",
				 file->path, offset ? why.message : "no section", what, file->size);
	result = reader(file, &cursor, error);
	if (result == 0 && cursor.failed)
		datafile_note_damage(file, memory ? offset : cursor.failed_at,
				     "the section of the %s is cut", what);
	cursor_close(&cursor);
	if (keep && memory) {
		*keep = memory;
		*keep_length = cursor.end;
	} else {
		free(memory);
	}
	return result;
}

/* Is what the buffer's option points to compressed? The text's place is the section's. */
static void look_at_buffer(struct datafile *file, struct datafile_buffer *buffer)
{
	struct section section;
	struct trace_error why;

	if (section_find(file, buffer->text_offset, &section, &why) < 0 ||
	    section.id != (buffer->is_text ? OPTION_BUFFER_TEXT : OPTION_BUFFER)) {
		datafile_note_damage(file, buffer->text_offset, "no records of buffer \"%s\"",
				     buffer->name);
		buffer->cpu_count = 0;
		return;
	}
	buffer->is_compressed = section.is_compressed;
	buffer->text_offset = section.offset;
	buffer->text_size = section.size;
	if (buffer->is_text)
		datafile_cut(file, section.offset, &buffer->text_size, "text", 0);
}

int datafile_read_v7(struct datafile *file, uint64_t options, struct trace_error *error)
{
	if (read_options(file, options, error) < 0 ||
	    read_section(file, file->header_section, "pages", datafile_read_header_info, NULL, NULL,
			 error) < 0 ||
	    read_section(file, file->ftrace_section, "tracer's events",
			 datafile_read_ftrace_formats, &file->ftrace_formats,
			 &file->ftrace_formats_length, error) < 0 ||
	    read_section(file, file->formats_section, "events", datafile_read_formats,
			 &file->formats, &file->formats_length, error) < 0)
		return -1;
	for (unsigned int i = 0; i < file->buffer_count; i++)
		look_at_buffer(file, &file->buffers[i]);
	if (!file->buffer_count)
		datafile_note_damage(file, options, "no buffer is named in its options");
	return 0;
}
