/* SPDX-License-Identifier: MIT */
#include "datafile_state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

static const char magic[] = "\x17\x08\x44tracing";

#define MAGIC_LENGTH (sizeof(magic) - 1)

struct datafile *datafile_get(struct datafile *file)
{
	file->holders++;
	return file;
}

void datafile_put(struct datafile *file)
{
	if (!file || --file->holders)
		return;
	for (unsigned int i = 0; i < file->buffer_count; i++) {
		free(file->buffers[i].name);
		free(file->buffers[i].clock);
		free(file->buffers[i].cpus);
	}
	for (size_t i = 0; i < file->event_count; i++)
		free((char *)file->events[i].name);
	for (size_t i = 0; i < file->system_count; i++)
		free(file->systems[i]);
	for (unsigned int i = 0; i < file->sample_cpus; i++)
		free(file->samples[i].list);
	free(file->samples);
	free(file->systems);
	free(file->events);
	free(file->by_id);
	free(file->buffers);
	free(file->formats);
	free(file->ftrace_formats);
	free(file->clock);
	free(file->info.uname);
	free(file->info.written_by);
	free(file->info.date);
	free(file->damage);
	free(file->path);
	strbuf_free(&file->stats);
	strbuf_free(&file->header_page);
	strbuf_free(&file->header_event);
	strbuf_free(&file->options);
	decoder_free(file->decoder);
	if (file->fd >= 0)
		close(file->fd);
	free(file);
}

void datafile_note_damage(struct datafile *file, uint64_t offset, const char *format, ...)
{
	char what[256];
	va_list arguments;

	if (file->damage)
		return;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	if (asprintf(&file->damage,
		     "%s is damaged, truncated or still being written: %s, at byte %" PRIu64
		     " of %" PRIu64,
		     file->path, what, offset, file->size) < 0)
		file->damage = NULL;
}

const char *datafile_damage(const struct datafile *file)
{
	return file->damage;
}

void datafile_cut(struct datafile *file, uint64_t offset, uint64_t *size, const char *what,
		  unsigned int cpu)
{
	uint64_t room = offset < file->size ? file->size - offset : 0;

	if (*size <= room)
		return;
	datafile_note_damage(file, file->size,
			     "%" PRIu64 " of %" PRIu64 " bytes of %s (CPU %u) are missing",
			     *size - room, *size, what, cpu);
	*size = room;
}

static int open_regular(struct datafile *file, struct trace_error *error)
{
	struct stat status;

	file->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file->fd < 0 || fstat(file->fd, &status) < 0) {
		int err = errno;

		return error_set(error, err, "cannot open %s: %s", file->path, strerror(err));
	}
	if (!S_ISREG(status.st_mode))
		return error_set(error, S_ISDIR(status.st_mode) ? EISDIR : ESPIPE,
				 "%s is no regular file: a recording is read at several places",
				 file->path);
	file->size = (uint64_t)status.st_size;
	return 0;
}

static int bad_start(struct datafile *file, const char *what, struct trace_error *error)
{
	return error_set(error, EINVAL, "%s is no trace.dat file: %s", file->path, what);
}

static int set_codec(struct datafile *file, const char *name, struct trace_error *error)
{
	struct trace_error why;

	if (codec_find(name, &file->info.codec, &why) < 0)
		return error_set(error, why.code, "cannot read %s: %s", file->path, why.message);
	file->decoder = decoder_create(file->info.codec);
	if (!file->decoder)
		return error_set(error, ENOMEM, "out of memory");
	return 0;
}

static int read_start(struct datafile *file, struct cursor *cursor, struct trace_error *error)
{
	char start[MAGIC_LENGTH], version[16], codec[64], codec_version[64];
	uint8_t sizes[2];
	uint64_t options;

	cursor_bytes(cursor, start, sizeof(start));
	if (cursor->failed || memcmp(start, magic, MAGIC_LENGTH) != 0)
		return bad_start(file, "it does not begin like one", error);
	cursor_string(cursor, version, sizeof(version));
	cursor_bytes(cursor, sizes, sizeof(sizes));
	if (cursor->failed)
		return bad_start(file, "it ends within its first bytes", error);
	if (strcmp(version, "6") != 0 && strcmp(version, "7") != 0)
		return error_set(error, ENOTSUP,
				 "cannot read %s: it is a trace.dat of version \"%s\"; 6 and 7 can "
				 "be read",
				 file->path, version);
	file->info.version = (unsigned int)(version[0] - '0');
	if (sizes[0] > 1 || (sizes[1] != 4 && sizes[1] != 8))
		return bad_start(file, "its byte order and size of a long make no sense", error);
	file->info.big_endian = sizes[0];
	file->info.long_size = sizes[1];
	file->swap = file->info.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	cursor->swap = file->swap;
	file->info.page_size = cursor_u32(cursor);
	if (cursor->failed)
		return bad_start(file, "it ends within its first bytes", error);
	if (file->info.page_size < 64 || file->info.page_size > (UINT32_C(1) << 26))
		return bad_start(file, "its page size makes no sense", error);
	if (file->info.version == 6)
		return set_codec(file, "none", error) < 0 ? -1 :
							    datafile_read_v6(file, cursor, error);

	cursor_string(cursor, codec, sizeof(codec));
	cursor_string(cursor, codec_version, sizeof(codec_version));
	options = cursor_u64(cursor);
	if (cursor->failed)
		return bad_start(file, "it ends within its first bytes", error);
	if (set_codec(file, codec, error) < 0)
		return -1;
	return datafile_read_v7(file, options, error);
}

/* The largest sub-buffers decide how large the memory for one has to be. */
static void set_layout_size(struct datafile *file)
{
	uint32_t size = file->info.page_size;

	for (unsigned int i = 0; i < file->buffer_count; i++)
		if (file->buffers[i].page_size > size)
			size = file->buffers[i].page_size;
	file->layout.size = size;
}

static struct datafile *open_file(const char *path, struct trace_error *error)
{
	struct datafile *file = calloc(1, sizeof(*file));
	struct cursor cursor;
	int result;

	if (!file) {
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	file->holders = 1;
	file->fd = -1;
	file->path = strdup(path);
	file->clock = strdup("");
	if (!file->path || !file->clock) {
		error_set(error, ENOMEM, "out of memory");
		goto fail;
	}
	if (open_regular(file, error) < 0)
		goto fail;
	cursor_open_file(&cursor, file->fd, 0, file->size, false);
	result = read_start(file, &cursor, error);
	cursor_close(&cursor);
	if (result < 0 || datafile_index_events(file, error) < 0)
		goto fail;
	datafile_spread_stats(file);
	set_layout_size(file);
	return file;

fail:
	datafile_put(file);
	return NULL;
}

struct datafile *datafile_open(const char *path, struct trace_error *error)
{
	return open_file(path, error);
}

const char *datafile_path(const struct datafile *file)
{
	return file->path;
}

bool datafile_is_at(const struct datafile *file, const char *path)
{
	struct stat own, other;

	return fstat(file->fd, &own) == 0 && stat(path, &other) == 0 &&
	       own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

const struct datafile_info *datafile_info(const struct datafile *file)
{
	return &file->info;
}

unsigned int datafile_buffer_count(const struct datafile *file)
{
	return file->buffer_count;
}

const struct datafile_buffer *datafile_buffer(const struct datafile *file, unsigned int index)
{
	return &file->buffers[index];
}

const struct page_layout *datafile_layout(const struct datafile *file)
{
	return &file->layout;
}

void datafile_time_map(const struct datafile *file, unsigned int cpu, struct time_map *map)
{
	*map = (struct time_map){
		.interpolates = file->interpolates,
		.mult = file->tsc_mult,
		.shift = file->tsc_shift,
		.offset = file->info.ts_offset,
	};
	if (cpu < file->sample_cpus) {
		map->samples = file->samples[cpu].list;
		map->sample_count = file->samples[cpu].count;
	}
}

const char *datafile_clock(const struct datafile *file, const struct datafile_buffer *buffer)
{
	return *buffer->clock ? buffer->clock : file->clock;
}

bool datafile_in_ns(const struct datafile *file, const struct datafile_buffer *buffer)
{
	static const struct clock_offsets none;
	const char *clock = datafile_clock(file, buffer);

	if (file->tsc_mult || !*clock || strcmp(clock, "uptime") == 0 ||
	    strcmp(clock, "tsc2nsec") == 0)
		return true;
	return trace_clock_find(clock, &none).in_ns;
}

size_t datafile_event_count(const struct datafile *file)
{
	return file->event_count;
}

const struct datafile_event *datafile_event(const struct datafile *file, size_t index)
{
	return &file->events[index];
}

const struct datafile_event *datafile_find_event(const struct datafile *file, const char *system,
						 const char *name)
{
	for (size_t i = 0; i < file->event_count; i++)
		if (strcmp(file->events[i].name, name) == 0 &&
		    strcmp(file->events[i].system, system) == 0)
			return &file->events[i];
	return NULL;
}

const struct datafile_event *datafile_find_id(const struct datafile *file, int id)
{
	if (id < 0 || id > UINT16_MAX || !file->by_id || !file->by_id[id])
		return NULL;
	return &file->events[file->by_id[id] - 1];
}
