/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datafile_state.h"

#define TSYNC_INTERPOLATE 1

/* A NUL-terminated copy of an option that is text. */
static char *text_of(const uint8_t *data, uint32_t size)
{
	return strndup((const char *)data, size);
}

static int set_text(char **to, const uint8_t *data, uint32_t size, struct trace_error *error)
{
	char *text = text_of(data, size);

	if (!text)
		return error_set(error, ENOMEM, "out of memory");
	free(*to);
	*to = text;
	return 0;
}

struct datafile_buffer *datafile_add_buffer(struct datafile *file, const char *name,
					    struct trace_error *error)
{
	struct datafile_buffer *buffers, *buffer;

	if (file->buffer_count == DATAFILE_MAX_BUFFERS) {
		error_set(error, EINVAL, "%s names more than %d buffers", file->path,
			  DATAFILE_MAX_BUFFERS);
		return NULL;
	}
	buffers = reallocarray(file->buffers, file->buffer_count + 1, sizeof(*buffers));
	if (!buffers) {
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	file->buffers = buffers;
	buffer = &buffers[file->buffer_count];
	*buffer = (struct datafile_buffer){ .page_size = file->info.page_size };
	buffer->name = strdup(name);
	buffer->clock = strdup("");
	if (!buffer->name || !buffer->clock) {
		free(buffer->name);
		free(buffer->clock);
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	file->buffer_count++;
	return buffer;
}

static int compare_cpus(const void *left, const void *right)
{
	const struct datafile_cpu *a = left, *b = right;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Version 7: CPUs with their places. What makes no sense is noted and left out. */
static int read_buffer_cpus(struct datafile *file, struct datafile_buffer *buffer,
			    struct cursor *cursor, struct trace_error *error)
{
	uint32_t page_size = cursor_u32(cursor);
	uint32_t count = cursor_u32(cursor);

	if (page_size >= 64 && page_size <= (UINT32_C(1) << 26))
		buffer->page_size = page_size;
	/* each takes 20 bytes of the option */
	if (cursor->failed || count > (cursor->end - cursor->at) / 20 ||
	    count > DATAFILE_MAX_CPUS) {
		datafile_note_damage(file, buffer->text_offset,
				     "the list of CPUs of buffer \"%s\" is cut", buffer->name);
		count = 0;
	}
	buffer->cpus = calloc(count ? count : 1, sizeof(*buffer->cpus));
	if (!buffer->cpus)
		return error_set(error, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		struct datafile_cpu *cpu = &buffer->cpus[buffer->cpu_count];

		cpu->cpu = cursor_u32(cursor);
		cpu->offset = cursor_u64(cursor);
		cpu->size = cursor_u64(cursor);
		if (cpu->cpu > DATAFILE_MAX_CPUS) {
			datafile_note_damage(file, buffer->text_offset,
					     "there is no CPU %u, which buffer \"%s\" names",
					     cpu->cpu, buffer->name);
			continue;
		}
		datafile_cut(file, cpu->offset, &cpu->size, "records", cpu->cpu);
		buffer->cpu_count++;
	}
	qsort(buffer->cpus, buffer->cpu_count, sizeof(*buffer->cpus), compare_cpus);
	return 0;
}

/* Version 6 has only where the buffer's table of CPUs stands, and its name. */
static int take_buffer(struct datafile *file, const uint8_t *data, uint32_t size, bool is_text,
		       struct trace_error *error)
{
	struct datafile_buffer *buffer;
	struct cursor cursor;
	char name[4096], clock[256];
	uint64_t offset;
	int result = 0;

	cursor_open_memory(&cursor, data, size, file->swap);
	offset = cursor_u64(&cursor);
	cursor_string(&cursor, name, sizeof(name));
	if (cursor.failed) {
		datafile_note_damage(file, 0, "what an option says about a buffer is cut");
		return 0;
	}
	buffer = datafile_add_buffer(file, name, error);
	if (!buffer)
		return -1;
	buffer->text_offset = offset;
	if (file->info.version == 6)
		return 0;
	cursor_string(&cursor, clock, sizeof(clock));
	if (!cursor.failed &&
	    set_text(&buffer->clock, (const uint8_t *)clock, (uint32_t)strlen(clock), error) < 0)
		return -1;
	buffer->is_text = is_text;
	if (!is_text)
		result = read_buffer_cpus(file, buffer, &cursor, error);
	return result;
}

void datafile_set_clock(struct datafile *file, const char *text, size_t length)
{
	const char *open = memchr(text, '[', length);
	const char *close = open ? memchr(open, ']', (size_t)(text + length - open)) : NULL;
	char *clock = close ? strndup(open + 1, (size_t)(close - open - 1)) : NULL;

	if (!clock)
		return;
	free(file->clock);
	file->clock = clock;
}

static int compare_samples(const void *left, const void *right)
{
	const struct time_sample *a = left, *b = right;

	return a->time < b->time ? -1 : a->time > b->time;
}

static int read_samples(struct datafile_samples *samples, struct cursor *cursor)
{
	uint32_t count = cursor_u32(cursor);

	/* 24 bytes each, at least */
	if (cursor->failed || count > (cursor->end - cursor->at) / 24) {
		cursor->failed = true;
		return 0;
	}
	samples->list = calloc(count ? count : 1, sizeof(*samples->list));
	if (!samples->list)
		return -1;
	samples->count = count;
	for (uint32_t i = 0; i < count; i++)
		samples->list[i].time = cursor_u64(cursor);
	for (uint32_t i = 0; i < count; i++)
		samples->list[i].offset = (int64_t)cursor_u64(cursor);
	for (uint32_t i = 0; i < count; i++)
		samples->list[i].scaling = cursor_u64(cursor);
	return 0;
}

static void sort_samples(struct datafile_samples *samples)
{
	unsigned int kept = 0;

	if (!samples->count)
		return;
	qsort(samples->list, samples->count, sizeof(*samples->list), compare_samples);
	for (unsigned int i = 0; i < samples->count; i++)
		if (!i || samples->list[i].time != samples->list[i - 1].time)
			samples->list[kept++] = samples->list[i];
	samples->count = kept;
}

/* How a guest's clock relates to its host's, for each CPU. */
static int take_time_shift(struct datafile *file, const uint8_t *data, uint32_t size,
			   struct trace_error *error)
{
	struct cursor cursor;
	uint32_t count;
	int result = 0;

	if (file->samples)
		return 0;
	cursor_open_memory(&cursor, data, size, file->swap);
	cursor_u64(&cursor); /* the peer's trace id */
	file->interpolates = cursor_u32(&cursor) & TSYNC_INTERPOLATE;
	count = cursor_u32(&cursor);
	if (!cursor.failed && count <= (cursor.end - cursor.at) / 4) {
		file->samples = calloc(count ? count : 1, sizeof(*file->samples));
		if (!file->samples)
			return error_set(error, ENOMEM, "out of memory");
		file->sample_cpus = count;
		for (uint32_t i = 0; i < count && !cursor.failed && result == 0; i++)
			result = read_samples(&file->samples[i], &cursor);
		/* newer writers add by how many bits the scaling is shifted */
		for (uint32_t i = 0; i < count && !cursor.failed && cursor.at < cursor.end; i++)
			for (uint32_t k = 0; k < file->samples[i].count; k++)
				file->samples[i].list[k].fraction = cursor_u64(&cursor);
		for (uint32_t i = 0; i < count; i++)
			sort_samples(&file->samples[i]);
	} else {
		cursor.failed = true;
	}
	if (cursor.failed)
		datafile_note_damage(file, 0, "the option that relates guest and host is cut");
	return result < 0 ? error_set(error, ENOMEM, "out of memory") : 0;
}

/* "0x..." in units of @unit ns. */
static void add_offset(struct datafile *file, const uint8_t *data, uint32_t size, int64_t unit)
{
	char text[64];

	snprintf(text, sizeof(text), "%.*s", size < sizeof(text) ? (int)size : 63,
		 (const char *)data);
	file->info.ts_offset = (int64_t)((uint64_t)file->info.ts_offset +
					 (uint64_t)strtoll(text, NULL, 0) * (uint64_t)unit);
}

static int take_option(struct datafile *file, unsigned int id, const uint8_t *data, uint32_t size,
		       struct trace_error *error)
{
	struct cursor cursor;

	datafile_keep_option(file, id, data, size);
	cursor_open_memory(&cursor, data, size, file->swap);
	switch (id) {
	case OPTION_DATE:
		add_offset(file, data, size, 1000);
		return set_text(&file->info.date, data, size, error);
	case OPTION_OFFSET:
		add_offset(file, data, size, 1);
		return 0;
	case OPTION_CPUSTAT:
		strbuf_add(&file->stats, (const char *)data, strnlen((const char *)data, size));
		strbuf_add_char(&file->stats, '\n');
		return 0;
	case OPTION_BUFFER:
		return take_buffer(file, data, size, false, error);
	case OPTION_BUFFER_TEXT:
		return take_buffer(file, data, size, true, error);
	case OPTION_TRACECLOCK:
		datafile_set_clock(file, (const char *)data, size);
		return 0;
	case OPTION_UNAME:
		return set_text(&file->info.uname, data, size, error);
	case OPTION_VERSION:
		return set_text(&file->info.written_by, data, size, error);
	case OPTION_CPUCOUNT:
		file->info.cpu_count = cursor_u32(&cursor);
		if (file->info.cpu_count > DATAFILE_MAX_CPUS)
			file->info.cpu_count = 0;
		return 0;
	case OPTION_TRACEID:
		file->info.trace_id = cursor_u64(&cursor);
		return 0;
	case OPTION_TIME_SHIFT:
		return take_time_shift(file, data, size, error);
	case OPTION_TSC2NSEC:
		file->tsc_mult = cursor_u32(&cursor);
		file->tsc_shift = cursor_u32(&cursor);
		return 0;
	case OPTION_HEADER_INFO:
		file->header_section = cursor_u64(&cursor);
		return 0;
	case OPTION_FTRACE_EVENTS:
		file->ftrace_section = cursor_u64(&cursor);
		return 0;
	case OPTION_EVENT_FORMATS:
		file->formats_section = cursor_u64(&cursor);
		return 0;
	case OPTION_KALLSYMS:
		file->kallsyms = (struct datafile_text){ true, cursor_u64(&cursor), 0 };
		return 0;
	case OPTION_PRINTK:
		file->printk = (struct datafile_text){ true, cursor_u64(&cursor), 0 };
		return 0;
	case OPTION_CMDLINES:
		file->cmdlines = (struct datafile_text){ true, cursor_u64(&cursor), 0 };
		return 0;
	default: /* what a later writer adds is none of our business */
		return 0;
	}
}

int datafile_read_option(struct datafile *file, unsigned int id, uint32_t size,
			 struct cursor *cursor, struct trace_error *error)
{
	uint8_t *data;
	int result = 0;

	if (cursor->failed || size > DATAFILE_OPTIONS_MAX || size > cursor->end - cursor->at) {
		cursor->failed = true;
		cursor->failed_at = cursor->at;
		return 0;
	}
	data = malloc((size_t)size + 1);
	if (!data)
		return error_set(error, ENOMEM, "out of memory");
	if (cursor_bytes(cursor, data, size))
		result = take_option(file, id, data, size, error);
	free(data);
	return result;
}

static struct datafile_buffer *buffer_named(struct datafile *file, const char *name)
{
	for (unsigned int i = 0; i < file->buffer_count; i++)
		if (strcmp(file->buffers[i].name, name) == 0)
			return &file->buffers[i];
	return NULL;
}

static struct datafile_stats *stats_of(struct datafile_buffer *buffer, unsigned int cpu)
{
	for (unsigned int i = 0; buffer && i < buffer->cpu_count; i++)
		if (buffer->cpus[i].cpu == cpu)
			return &buffer->cpus[i].stats;
	return NULL;
}

static bool number_behind(const char *line, const char *label, uint64_t *number)
{
	size_t length = strlen(label);

	if (strncmp(line, label, length) != 0)
		return false;
	*number = strtoull(line + length, NULL, 10);
	return true;
}

/* Lines of per_cpu/cpuN/stats, with "CPU: N" before each and "Buffer: NAME" before a buffer's. */
void datafile_spread_stats(struct datafile *file)
{
	struct datafile_buffer *buffer = buffer_named(file, "");
	struct datafile_stats *stats = NULL;
	char *rest = file->stats.text, *line;

	while (rest && (line = strsep(&rest, "\n"))) {
		uint64_t number;

		if (strncmp(line, "Buffer: ", strlen("Buffer: ")) == 0) {
			buffer = buffer_named(file, line + strlen("Buffer: "));
			stats = NULL;
		} else if (number_behind(line, "CPU: ", &number)) {
			stats = stats_of(buffer, (unsigned int)number);
		} else if (stats && number_behind(line, "overrun: ", &number)) {
			stats->overrun = number;
			stats->is_known = true;
		} else if (stats && number_behind(line, "commit overrun: ", &number)) {
			stats->commit_overrun = number;
		} else if (stats && number_behind(line, "dropped events: ", &number)) {
			stats->dropped = number;
		}
	}
	strbuf_free(&file->stats);
}
