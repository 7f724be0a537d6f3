/* SPDX-License-Identifier: MIT */
#include "report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "text.h"

/* Given at once; one record's text may be longer. */
#define BLOCK_SIZE ((size_t)64 << 10)
#define RECORDS_MAX 65536

struct report {
	struct stream *stream;
	struct datafile *file;
	struct catalog *catalog;
	struct report_options options;
	int buffer_width; /* of the longest name of a buffer */
	bool is_begun;
	struct strbuf body;
	uint64_t *lost; /* by lane: what is to be told before its next record */
};

struct report *report_open(struct stream *stream, struct datafile *file, struct catalog *catalog,
			   const struct report_options *options)
{
	struct report *report = calloc(1, sizeof(*report));

	if (!report)
		return NULL;
	report->stream = stream;
	report->file = file;
	report->catalog = catalog;
	report->options = *options;
	report->lost = calloc(stream_cpu_count(stream) + 1, sizeof(*report->lost));
	if (!report->lost) {
		free(report);
		return NULL;
	}
	for (unsigned int i = 0; i < stream_cpu_count(stream); i++) {
		int width = (int)strlen(filestream_buffer(stream, i)->name);

		if (width > report->buffer_width)
			report->buffer_width = width;
	}
	return report;
}

void report_close(struct report *report)
{
	if (!report)
		return;
	strbuf_free(&report->body);
	free(report->lost);
	free(report);
}

/* The format of an id that has not been met: parsed now. NULL: nobody knows it. */
static const struct event_format *format_of(struct report *report, const struct event *event,
					    int *id)
{
	const struct datafile_event *described;
	const struct event_format *format;

	*id = catalog_record_type(report->catalog, event->data, event->size);
	format = catalog_by_id(report->catalog, *id);
	if (format)
		return format;
	described = datafile_find_id(report->file, *id);
	return described ? datafile_describe(report->file, described, report->catalog, NULL) : NULL;
}

static void add_body(struct strbuf *out, const struct event_format *format,
		     const struct event *event)
{
	if (format)
		text_body(out, format, event->data, event->size);
	else
		strbuf_addf(out, "%u bytes of an event whose format is not known", event->size);
}

/*
 * Numbers and padding without printf, which would take half of the time that a line takes: @at is
 * where the next character goes, and what is returned.
 */
static char *put_padding(char *at, int count)
{
	while (count-- > 0)
		*at++ = ' ';
	return at;
}

static char *put_number(char *at, uint64_t number, int width, char fill)
{
	char digits[20];
	int count = 0;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (width-- > count)
		*at++ = fill;
	while (count)
		*at++ = digits[--count];
	return at;
}

static char *put_time(char *at, uint64_t ts, const struct report_options *options)
{
	*at++ = ' ';
	if (!options->in_ns)
		return put_number(at, ts, 11, ' ');
	if (!options->nanoseconds)
		ts = (ts + 500) / 1000;
	at = put_number(at, ts / (options->nanoseconds ? 1000000000 : 1000000), 5, ' ');
	*at++ = '.';
	return options->nanoseconds ? put_number(at, ts % 1000000000, 9, '0') :
				      put_number(at, ts % 1000000, 6, '0');
}

/* "-PID   [CPU]  TIME: " */
static char *put_place(char *at, int pid, const struct event *event,
		       const struct report_options *options)
{
	char *start = at + 1;

	*at++ = '-';
	if (pid < 0)
		*at++ = '-';
	at = put_number(at, pid < 0 ? -(uint64_t)pid : (uint64_t)pid, 0, ' ');
	at = put_padding(at, 5 - (int)(at - start));
	*at++ = ' ';
	*at++ = '[';
	at = put_number(at, event->cpu, 3, '0');
	*at++ = ']';
	at = put_time(at, event->ts, options);
	*at++ = ':';
	*at++ = ' ';
	return at;
}

/* "     buffer: ", as wide for all lines; nothing of use for the top one. */
static void add_buffer(struct report *report, struct strbuf *out, unsigned int lane)
{
	const char *name = filestream_buffer(report->stream, lane)->name;
	int length = (int)strlen(name);

	if (!report->options.shows_buffer)
		return;
	strbuf_addf(out, "%*s", report->buffer_width - length, "");
	text_add_safe(out, name, (size_t)length);
	strbuf_add_string(out, length ? ": " : "  ");
}

static void add_text(struct report *report, struct strbuf *out, const struct event *event)
{
	int pid = catalog_record_pid(report->catalog, event->data, event->size);
	const char *comm = comm_lookup(catalog_comms(report->catalog), pid);
	const struct event_format *format;
	int id, length = (int)strlen(comm);
	char place[128];

	if (report->lost[event->lane] == PAGE_LOST_UNKNOWN)
		strbuf_addf(out, "CPU:%u [EVENTS DROPPED]\n", event->cpu);
	else if (report->lost[event->lane])
		strbuf_addf(out, "CPU:%u [%" PRIu64 " EVENTS DROPPED]\n", event->cpu,
			    report->lost[event->lane]);
	report->lost[event->lane] = 0;
	add_buffer(report, out, event->lane);
	format = format_of(report, event, &id);
	strbuf_add(out, place, (size_t)(put_padding(place, 16 - length) - place));
	text_add_safe(out, comm, (size_t)length);
	strbuf_add(out, place, (size_t)(put_place(place, pid, event, &report->options) - place));
	if (format) {
		int name = (int)strlen(format->name);

		strbuf_add(out, format->name, (size_t)name);
		strbuf_add(out, ": ", 2);
		strbuf_add(out, place, (size_t)(put_padding(place, 20 - name) - place));
	} else {
		strbuf_addf(out, "[event %d]:          ", id);
	}
	add_body(out, format, event);
	strbuf_add_char(out, '\n');
}

/* In quotes, with those inside doubled. */
static void add_quoted(struct strbuf *out, const char *text, size_t length)
{
	strbuf_add_char(out, '"');
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '"')
			strbuf_add_char(out, '"');
		strbuf_add_char(out, text[i]);
	}
	strbuf_add_char(out, '"');
}

static void add_csv(struct report *report, struct strbuf *out, const struct event *event)
{
	int pid = catalog_record_pid(report->catalog, event->data, event->size);
	const char *comm = comm_lookup(catalog_comms(report->catalog), pid);
	const struct event_format *format;
	int id;

	format = format_of(report, event, &id);
	strbuf_addf(out, "%" PRIu64 ",%u,%d,", event->ts, event->cpu, pid);
	strbuf_reset(&report->body);
	text_add_safe(&report->body, comm, strlen(comm));
	add_quoted(out, report->body.text ? report->body.text : "", report->body.length);
	strbuf_addf(out, ",%s,", format ? format->label : "");
	strbuf_reset(&report->body);
	add_body(&report->body, format, event);
	add_quoted(out, report->body.text ? report->body.text : "", report->body.length);
	strbuf_add_char(out, '\n');
}

static void note_loss(struct report *report, const struct loss *loss)
{
	uint64_t *lost = &report->lost[loss->lane];

	/* what only the file's statistics tell of has no place among the records */
	if (*lost == PAGE_LOST_UNKNOWN || loss->count == PAGE_LOST_UNKNOWN)
		*lost = PAGE_LOST_UNKNOWN;
	else
		*lost += loss->count;
}

int report_run(struct report *report, struct strbuf *out, struct trace_error *error)
{
	struct item item;

	if (!report->is_begun && report->options.format == REPORT_CSV)
		strbuf_add_string(out, "timestamp,cpu,pid,comm,event,text\n");
	report->is_begun = true;
	for (unsigned int count = 0; count < RECORDS_MAX && out->length < BLOCK_SIZE;) {
		switch (stream_next(report->stream, &item)) {
		case ITEM_EVENT:
			count++;
			if (report->options.format == REPORT_CSV)
				add_csv(report, out, &item.event);
			else
				add_text(report, out, &item.event);
			break;
		case ITEM_LOST:
			note_loss(report, &item.loss);
			break;
		case ITEM_END:
			return 0;
		default:
			if (stream_fill(report->stream, error) < 0)
				return -1;
			break;
		}
	}
	return 1;
}
