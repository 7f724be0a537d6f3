/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "datafile_state.h"
#include "ksym.h"
#include "printk.h"

/* The first lines of a format file, "name: NAME" and "ID: NUMBER", fit into that. */
#define FORMAT_HEAD 512

/* No format file is longer; one of 64 KiB has been seen. */
#define FORMAT_MAX (UINT32_C(1) << 20)

static int cut(struct datafile *file, const struct cursor *cursor, const char *what,
	       struct trace_error *error)
{
	return error_set(error, EINVAL,
			 "%s is truncated or damaged: no %s at byte %" PRIu64 " of %" PRIu64
			 "; nothing can be read of it",
			 file->path, what, cursor->failed_at, file->size);
}

/* The texts of events/header_page and header_event. Only the first is needed. */
int datafile_read_header_info(struct datafile *file, struct cursor *cursor,
			      struct trace_error *error)
{
	char name[16] = "", text[2048];
	struct trace_error why;
	uint64_t length;

	cursor_bytes(cursor, name, sizeof("header_page"));
	length = cursor_u64(cursor);
	if (cursor->failed || memcmp(name, "header_page", sizeof("header_page")) != 0 ||
	    length >= sizeof(text))
		return cut(file, cursor, "description of its pages", error);
	cursor_bytes(cursor, text, length);
	if (cursor->failed)
		return cut(file, cursor, "description of its pages", error);
	if (page_layout_parse(&file->layout, text, length, file->info.big_endian, &why) < 0)
		return error_set(error, why.code, "cannot read %s: %s", file->path, why.message);
	/* what the kernel has, whatever the program that wrote the file was */
	file->info.long_size = file->layout.long_size;
	strbuf_add(&file->header_page, text, length);
	if (!cursor_bytes(cursor, name, sizeof("header_event")) ||
	    memcmp(name, "header_event", sizeof("header_event")) != 0)
		return cut(file, cursor, "description of its records", error);
	length = cursor_u64(cursor);
	/* only for others to read: one that nobody could is passed over */
	if (length < sizeof(text) && cursor_bytes(cursor, text, length))
		strbuf_add(&file->header_event, text, length);
	else if (!cursor_skip(cursor, length))
		return cut(file, cursor, "description of its records", error);
	return 0;
}

/* The name and the id out of a format's first lines; false when they are not there. */
static bool parse_head(char *head, char **name, int *id)
{
	char *line = strchr(head, '\n');

	if (strncmp(head, "name: ", strlen("name: ")) != 0 || !line ||
	    strncmp(line, "\nID: ", strlen("\nID: ")) != 0)
		return false;
	*line = '\0';
	*name = head + strlen("name: ");
	*id = (int)strtol(line + strlen("\nID: "), NULL, 10);
	return **name && *id >= 0 && *id <= UINT16_MAX;
}

static int push_event(struct datafile *file, const struct datafile_event *event)
{
	if (file->event_count == file->event_capacity) {
		size_t capacity = file->event_capacity ? file->event_capacity * 2 : 512;
		struct datafile_event *events;

		events = reallocarray(file->events, capacity, sizeof(*events));
		if (!events)
			return -1;
		file->events = events;
		file->event_capacity = capacity;
	}
	file->events[file->event_count++] = *event;
	return 0;
}

/* One format: its place is noted, its text is parsed when a record needs it. */
static int read_format(struct datafile *file, struct cursor *cursor, const char *system,
		       struct trace_error *error)
{
	struct datafile_event event = { .system = system };
	uint64_t length = cursor_u64(cursor);
	char head[FORMAT_HEAD], *name;
	size_t part;

	if (!cursor->failed && length > FORMAT_MAX) {
		cursor->failed = true;
		cursor->failed_at = cursor->at;
	}
	if (cursor->failed)
		return 0;
	event.offset = cursor->at;
	event.length = (uint32_t)length;
	part = length < sizeof(head) - 1 ? length : sizeof(head) - 1;
	cursor_bytes(cursor, head, part);
	cursor_skip(cursor, length - part);
	head[cursor->failed ? 0 : part] = '\0';
	if (cursor->failed || !parse_head(head, &name, &event.id))
		return 0; /* an event without a name cannot be asked for */
	event.name = strdup(name);
	if (!event.name || push_event(file, &event) < 0) {
		free((char *)event.name);
		return error_set(error, ENOMEM, "out of memory");
	}
	return 0;
}

static char *add_system(struct datafile *file, const char *name)
{
	char **systems = reallocarray(file->systems, file->system_count + 1, sizeof(*systems));
	char *copy = strdup(name);

	if (systems)
		file->systems = systems;
	if (!systems || !copy) {
		free(copy);
		return NULL;
	}
	systems[file->system_count++] = copy;
	return copy;
}

int datafile_read_ftrace_formats(struct datafile *file, struct cursor *cursor,
				 struct trace_error *error)
{
	uint32_t count = cursor_u32(cursor);
	const char *system = add_system(file, "ftrace");

	if (!system)
		return error_set(error, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < count && !cursor->failed; i++)
		if (read_format(file, cursor, system, error) < 0)
			return -1;
	file->ftrace_count = file->event_count;
	return 0;
}

int datafile_read_formats(struct datafile *file, struct cursor *cursor, struct trace_error *error)
{
	uint32_t systems = cursor_u32(cursor);
	char name[512];

	for (uint32_t i = 0; i < systems && !cursor->failed; i++) {
		const char *system;
		uint32_t count;

		cursor_string(cursor, name, sizeof(name));
		count = cursor_u32(cursor);
		if (cursor->failed)
			break;
		system = add_system(file, name);
		if (!system)
			return error_set(error, ENOMEM, "out of memory");
		for (uint32_t k = 0; k < count && !cursor->failed; k++)
			if (read_format(file, cursor, system, error) < 0)
				return -1;
	}
	return 0;
}

int datafile_index_events(struct datafile *file, struct trace_error *error)
{
	file->by_id = calloc(UINT16_MAX + 1, sizeof(*file->by_id));
	if (!file->by_id)
		return error_set(error, ENOMEM, "out of memory");
	for (size_t i = 0; i < file->event_count; i++)
		if (!file->by_id[file->events[i].id])
			file->by_id[file->events[i].id] = (int)i + 1;
	return 0;
}

int datafile_format_text(struct datafile *file, const struct datafile_event *event,
			 struct strbuf *out, struct trace_error *error)
{
	bool is_ftrace = event < file->events + file->ftrace_count;
	const uint8_t *memory = is_ftrace ? file->ftrace_formats : file->formats;
	struct cursor cursor;
	char *text;

	text = malloc((size_t)event->length + 1);
	if (!text)
		return error_set(error, ENOMEM, "out of memory");
	if (memory)
		cursor_open_memory(&cursor, memory,
				   is_ftrace ? file->ftrace_formats_length : file->formats_length,
				   file->swap);
	else
		cursor_open_file(&cursor, file->fd, 0, file->size, file->swap);
	cursor_skip(&cursor, event->offset);
	cursor_bytes(&cursor, text, event->length);
	cursor_close(&cursor);
	if (!cursor.failed)
		strbuf_add(out, text, event->length);
	free(text);
	if (cursor.failed || out->failed)
		return error_set(error, out->failed ? ENOMEM : EIO,
				 "cannot read the format of %s:%s at byte %" PRIu64 " of %s",
				 event->system, event->name, event->offset, file->path);
	return 0;
}

struct event_format *datafile_describe(struct datafile *file, const struct datafile_event *event,
				       struct catalog *catalog, struct trace_error *error)
{
	struct event_format *format = NULL;
	struct strbuf text = { 0 };

	if (datafile_format_text(file, event, &text, error) == 0)
		format = catalog_add(catalog, event->system, text.text ? text.text : "",
				     text.length, error);
	strbuf_free(&text);
	return format;
}

/* Symbols, printk formats, command names: a length, then the text. */
int datafile_load_text(struct datafile *file, const struct datafile_text *where, bool is_long,
		       struct strbuf *out)
{
	struct section section;
	struct cursor cursor;
	uint8_t *memory = NULL;
	uint64_t length = where->length;
	char part[4096];

	if (!where->is_there)
		return 0;
	if (file->info.version == 6) {
		cursor_open_file(&cursor, file->fd, where->offset, file->size, file->swap);
	} else {
		struct trace_error error;

		if (section_find(file, where->offset, &section, &error) < 0 ||
		    section_open(file, &section, &cursor, &memory, &error) < 0) {
			datafile_note_damage(file, where->offset, "%.200s", error.message);
			return -1;
		}
		length = is_long ? cursor_u64(&cursor) : cursor_u32(&cursor);
	}
	while (length && !cursor.failed && !out->failed) {
		size_t count = length < sizeof(part) ? length : sizeof(part);

		/* what is there of a text that is cut is better than none */
		if (count > cursor.end - cursor.at)
			count = (size_t)(cursor.end - cursor.at);
		if (count && cursor_bytes(&cursor, part, count))
			strbuf_add(out, part, count);
		if (!count || cursor.failed) {
			datafile_note_damage(file, memory ? where->offset : cursor.at,
					     "a text of names ends early");
			break;
		}
		length -= count;
	}
	cursor_close(&cursor);
	free(memory);
	return out->failed ? -1 : 0;
}

static int load_kallsyms(void *context, struct strbuf *out)
{
	struct datafile *file = context;

	return datafile_load_text(file, &file->kallsyms, false, out);
}

static int load_printk(void *context, struct strbuf *out)
{
	struct datafile *file = context;

	return datafile_load_text(file, &file->printk, false, out);
}

static void drop(void *context)
{
	datafile_put(context);
}

/* "5.10.3-arch1" out of "Linux HOST 5.10.3-arch1 x86_64". */
static void set_release(const struct datafile *file, struct catalog *catalog)
{
	const char *at = file->info.uname;

	for (; at && *at; at++)
		if (at[0] == ' ' && at[1] >= '0' && at[1] <= '9') {
			catalog_set_release(catalog, at + 1);
			return;
		}
}

int datafile_fill_catalog(struct datafile *file, struct catalog *catalog, struct trace_error *error)
{
	struct strbuf text = { 0 };
	int result;

	datafile_load_text(file, &file->cmdlines, true, &text);
	result = comm_add_saved(catalog_comms(catalog), text.text ? text.text : "", text.length);
	strbuf_free(&text);
	if (result < 0)
		return error_set(error, ENOMEM, "out of memory");
	set_release(file, catalog);
	ksym_set_lazy(catalog_ksyms(catalog),
		      (struct lazy_text){ datafile_get(file), load_kallsyms, drop });
	printk_set_lazy(catalog_printks(catalog),
			(struct lazy_text){ datafile_get(file), load_printk, drop });
	return 0;
}
