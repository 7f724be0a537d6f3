/* SPDX-License-Identifier: MIT */
/*
 * The engine without Lua: empties an instance through the ordered stream and reads two
 * fields of every record of one event. Prints the events and the CPU time that this
 * took; opening and parsing are outside the time.
 */
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "format.h"
#include "instance.h"
#include "strbuf.h"
#include "stream.h"
#include "tracedir.h"
#include "value.h"

struct reader {
	const struct event_format *format;
	const struct event_field *first;
	const struct event_field *second;
	uint64_t count;
	uint64_t sum;
};

__attribute__((noreturn)) static void fail(const struct trace_error *error)
{
	fprintf(stderr, "engine: %s\n", error->message);
	exit(1);
}

static const struct event_field *find_field(const struct event_format *format, const char *name)
{
	int index = format_field_index(format, name);

	if (index < 0) {
		fprintf(stderr, "engine: %s has no field %s\n", format->label, name);
		exit(1);
	}
	return &format->fields[index];
}

static void read_record(struct reader *reader, const struct event *event)
{
	const struct event_format *format = reader->format;
	struct value first;
	struct value second;

	if (catalog_record_type(format->catalog, event->data, event->size) != format->id)
		return;
	if (value_read(format, reader->first, event->data, event->size, &first) ||
	    value_read(format, reader->second, event->data, event->size, &second))
		return;
	reader->count++;
	reader->sum += (uint64_t)first.number + (uint64_t)second.number;
}

static void read_everything(struct stream *stream, struct reader *reader)
{
	struct pollfd wait = { .fd = stream_fd(stream), .events = POLLIN };
	struct trace_error error;
	struct item item;

	stream_finish(stream);
	for (;;) {
		switch (stream_next(stream, &item)) {
		case ITEM_EVENT:
			read_record(reader, &item.event);
			break;
		case ITEM_NONE:
			if (!stream_is_behind(stream))
				poll(&wait, 1, -1);
			if (stream_fill(stream, &error))
				fail(&error);
			break;
		case ITEM_END:
			return;
		default:
			break;
		}
	}
}

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	struct stream_options options = {
		.clock = "mono",
		.margin_ns = 1000000,
		.interval_ns = 100000000,
		.memory = UINT64_C(64) << 20,
		.buffer_percent = 50,
		.overwrite = true,
	};
	struct reader reader = { 0 };
	struct strbuf text = { 0 };
	struct instance *instance;
	struct catalog *catalog;
	struct trace_error error;
	struct stream *stream;
	char *tracing_dir;
	uint64_t start;
	uint64_t spent;
	char file[256];

	if (argc != 6) {
		fputs("usage: engine INSTANCE SYSTEM EVENT FIELD FIELD\n", stderr);
		return 2;
	}
	tracing_dir = tracing_dir_find(NULL, &error);
	if (!tracing_dir)
		fail(&error);
	instance = instance_open(tracing_dir, argv[1], &error);
	if (!instance)
		fail(&error);
	snprintf(file, sizeof(file), "events/%s/%s/format", argv[2], argv[3]);
	catalog = catalog_create(__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, sizeof(long));
	if (!catalog) {
		fputs("engine: out of memory\n", stderr);
		return 1;
	}
	if (instance_read(instance, file, &text, &error))
		fail(&error);
	reader.format = catalog_add(catalog, argv[2], text.text, text.length, &error);
	if (!reader.format)
		fail(&error);
	reader.first = find_field(reader.format, argv[4]);
	reader.second = find_field(reader.format, argv[5]);
	stream = stream_open(instance, &options, &error);
	if (!stream)
		fail(&error);

	start = thread_ns();
	read_everything(stream, &reader);
	spent = thread_ns() - start;
	printf("events=%llu cpu_ns=%llu sum=%llu\n", (unsigned long long)reader.count,
	       (unsigned long long)spent, (unsigned long long)reader.sum);

	stream_close(stream);
	catalog_free(catalog);
	instance_free(instance);
	free(tracing_dir);
	strbuf_free(&text);
	return 0;
}
