/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "datafile_state.h"

/* Version 6: one thing behind the other, in a fixed order. */

#define KIND_LENGTH 10 /* "options  ", "flyrecord", "latency  ", with the NUL */

static void note_text(struct datafile_text *text, struct cursor *cursor, uint64_t length)
{
	*text = (struct datafile_text){ true, cursor->at, length };
	cursor_skip(cursor, length);
}

static int read_options(struct datafile *file, struct cursor *cursor, struct trace_error *error)
{
	for (;;) {
		uint16_t id = cursor_u16(cursor);
		uint32_t size;

		if (cursor->failed || id == OPTION_DONE)
			return 0;
		size = cursor_u32(cursor);
		if (datafile_read_option(file, id, size, cursor, error) < 0)
			return -1;
	}
}

/* Where the records of each CPU are. */
static int read_cpus(struct datafile *file, struct datafile_buffer *buffer, uint32_t count,
		     struct cursor *cursor, struct trace_error *error)
{
	if (count > DATAFILE_MAX_CPUS || count > (cursor->end - cursor->at) / 16) {
		cursor->failed = true;
		cursor->failed_at = cursor->at;
		return 0;
	}
	buffer->cpus = calloc(count ? count : 1, sizeof(*buffer->cpus));
	if (!buffer->cpus)
		return error_set(error, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		struct datafile_cpu *cpu = &buffer->cpus[i];

		cpu->cpu = i;
		cpu->offset = cursor_u64(cursor);
		cpu->size = cursor_u64(cursor);
		datafile_cut(file, cpu->offset, &cpu->size, "records", i);
	}
	buffer->cpu_count = count;
	return 0;
}

/* "flyrecord" and places, or "latency" and the text up to the end of the file. */
static int read_data(struct datafile *file, unsigned int index, uint32_t cpus, const char *kind,
		     struct cursor *cursor, struct trace_error *error)
{
	struct datafile_buffer *buffer = &file->buffers[index];

	if (strncmp(kind, "latency", strlen("latency")) == 0) {
		buffer->is_text = true;
		buffer->text_offset = cursor->at;
		buffer->text_size = file->size - cursor->at;
		return 0;
	}
	if (strncmp(kind, "flyrecord", strlen("flyrecord")) == 0)
		return read_cpus(file, buffer, cpus, cursor, error);
	cursor->failed = true;
	cursor->failed_at = cursor->at;
	return 0;
}

static int read_instances(struct datafile *file, uint32_t cpus, struct trace_error *error)
{
	for (unsigned int i = 0; i < file->buffer_count; i++) {
		char kind[KIND_LENGTH];
		struct cursor cursor;
		int result = 0;

		if (!*file->buffers[i].name)
			continue;
		cursor_open_file(&cursor, file->fd, file->buffers[i].text_offset, file->size,
				 file->swap);
		if (cursor_bytes(&cursor, kind, sizeof(kind)))
			result = read_data(file, i, cpus, kind, &cursor, error);
		cursor_close(&cursor);
		if (result < 0)
			return -1;
		if (cursor.failed)
			datafile_note_damage(file, cursor.failed_at,
					     "no places of the records of buffer \"%s\"",
					     file->buffers[i].name);
	}
	return 0;
}

/* Of the top buffer, which has no name and stands first whatever the options name. */
static int read_top(struct datafile *file, uint32_t cpus, struct cursor *cursor,
		    struct trace_error *error)
{
	char kind[KIND_LENGTH];
	char clock[256];
	uint64_t length;

	if (!datafile_add_buffer(file, "", error))
		return -1;
	cursor_bytes(cursor, kind, sizeof(kind));
	if (!cursor->failed && strncmp(kind, "options", strlen("options")) == 0) {
		if (read_options(file, cursor, error) < 0)
			return -1;
		cursor_bytes(cursor, kind, sizeof(kind));
	}
	if (file->info.cpu_count)
		cpus = file->info.cpu_count;
	else
		file->info.cpu_count = cpus <= DATAFILE_MAX_CPUS ? cpus : 0;
	if (!cursor->failed && read_data(file, 0, cpus, kind, cursor, error) < 0)
		return -1;
	if (cursor->failed || file->buffers[0].is_text)
		return 0;
	/* the clock's file, in files that announce it with an option; else padding or records */
	length = cursor_u64(cursor);
	if (length > 0 && length < sizeof(clock) && cursor_bytes(cursor, clock, length))
		datafile_set_clock(file, clock, length);
	cursor->failed = false;
	return read_instances(file, cpus, error);
}

int datafile_read_v6(struct datafile *file, struct cursor *cursor, struct trace_error *error)
{
	uint32_t cpus;

	if (datafile_read_header_info(file, cursor, error) < 0 ||
	    datafile_read_ftrace_formats(file, cursor, error) < 0 ||
	    datafile_read_formats(file, cursor, error) < 0)
		return -1;
	note_text(&file->kallsyms, cursor, cursor_u32(cursor));
	note_text(&file->printk, cursor, cursor_u32(cursor));
	note_text(&file->cmdlines, cursor, cursor_u64(cursor));
	cpus = cursor_u32(cursor);
	if (cursor->failed)
		return error_set(error, EINVAL,
				 "%s is truncated or damaged: its description of events and names "
				 "is cut at byte %" PRIu64 " of %" PRIu64
				 ", so no record of it can be read",
				 file->path, cursor->failed_at, file->size);
	if (read_top(file, cpus, cursor, error) < 0)
		return -1;
	if (cursor->failed)
		datafile_note_damage(file, cursor->failed_at, "no places of records");
	return 0;
}
