/* SPDX-License-Identifier: MIT */
/*
 * Pages without a kernel: reads commands from stdin, one a line, and prints what page.c,
 * pagebuild.c and merge.c make of them. Bytes are written in hex, whatever the byte order of the page.
 *
 *   header little|big HEX    the text of a header_page file, for all that follows
 *   walk HEX                 the records of one page
 *   build HEX...             of one that pages are put together in, as far as they fit
 *   lanes N                  how many pages a CPU may have in the merge (before cpus)
 *   cpus CPU...              a new merge for these CPUs
 *   page LANE HEX            a page of one CPU, by its place in the list
 *   next WATERMARK           the next item that is not newer
 *   drain WATERMARK          all of them
 *   again                    the last event once more
 *   state LANE               what the merge says about itself
 *
 * WATERMARK "max" is the end of time. The program ends with status 0 when it has
 * understood every line, whatever the pages were like.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "merge.h"
#include "page.h"
#include "pagebuild.h"

#define MAX_CPUS 64

struct driver {
	struct page_layout layout;
	bool has_layout;
	unsigned int lane_pages;
	unsigned int lane_count;
	struct merge *merge;
	struct item item;
};

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("pages: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static char *next_word(char **line)
{
	char *word;

	do {
		word = strsep(line, " \n");
	} while (word && !*word);
	return word;
}

static uint64_t parse_number(const char *word, const char *what)
{
	char *end;
	uint64_t value;

	if (!word)
		fail("%s is missing", what);
	if (strcmp(word, "max") == 0)
		return UINT64_MAX;
	errno = 0;
	value = strtoull(word, &end, 0);
	if (errno || end == word || *end)
		fail("%s: '%s' is no number", what, word);
	return value;
}

/* Exactly as many bytes as were given, so that a sanitizer sees each read behind them. */
static uint8_t *parse_bytes(const char *word, size_t *length)
{
	size_t digits = word ? strlen(word) : 0;
	uint8_t *bytes = malloc(digits / 2 ? digits / 2 : 1);

	if (!bytes || digits % 2)
		fail("bytes: %zu hex digits", digits);
	for (size_t i = 0; i < digits / 2; i++) {
		unsigned int byte;

		if (sscanf(word + 2 * i, "%2x", &byte) != 1)
			fail("bytes: '%.2s' is not hex", word + 2 * i);
		bytes[i] = (uint8_t)byte;
	}
	*length = digits / 2;
	return bytes;
}

static void print_bytes(const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		printf("%02x", bytes[i]);
	putchar('\n');
}

static void print_count(uint64_t count)
{
	if (count == PAGE_LOST_UNKNOWN)
		fputs("unknown", stdout);
	else
		printf("%" PRIu64, count);
}

static void need_layout(const struct driver *driver)
{
	if (!driver->has_layout)
		fail("no header yet");
}

static void need_merge(const struct driver *driver)
{
	if (!driver->merge)
		fail("no cpus yet");
}

static unsigned int parse_lane(const struct driver *driver, char **rest)
{
	uint64_t lane = parse_number(next_word(rest), "the lane");

	need_merge(driver);
	if (lane >= driver->lane_count)
		fail("there are %u lanes", driver->lane_count);
	return (unsigned int)lane;
}

static void run_header(struct driver *driver, char *rest)
{
	const char *endian = next_word(&rest);
	struct trace_error error;
	uint8_t *text;
	size_t length;

	if (!endian || (strcmp(endian, "little") != 0 && strcmp(endian, "big") != 0))
		fail("header: little or big?");
	text = parse_bytes(next_word(&rest), &length);
	driver->has_layout = page_layout_parse(&driver->layout, (const char *)text, length,
					       strcmp(endian, "big") == 0, &error) == 0;
	if (driver->has_layout)
		printf("layout %u %u %u %u\n", driver->layout.commit_offset,
		       driver->layout.long_size, driver->layout.data_offset, driver->layout.size);
	else
		printf("error %d %s\n", error.code, error.message);
	free(text);
}

static void walk_page(const struct driver *driver, const uint8_t *page, size_t length)
{
	struct page_record record;
	struct page_walk walk;

	page_walk_start(&walk, &driver->layout, page, length);
	printf("page %" PRIu64 " lost ", walk.ts);
	print_count(walk.lost);
	putchar('\n');
	while (page_walk_next(&walk, &record)) {
		printf("record %" PRIu64 " %u ", record.ts, record.size);
		print_bytes(record.data, record.size);
	}
	if (walk.damage)
		printf("damage %zu %s\n", page_walk_offset(&walk), walk.damage);
	else
		printf("end %zu\n", page_walk_offset(&walk));
	/* A walk that has ended stays ended. */
	if (page_walk_next(&walk, &record))
		fail("a record behind the end of the walk");
}

static void run_walk(struct driver *driver, char *rest)
{
	uint8_t *page;
	size_t length;

	need_layout(driver);
	page = parse_bytes(next_word(&rest), &length);
	walk_page(driver, page, length);
	free(page);
}

static void run_build(struct driver *driver, char *rest)
{
	struct page_build build;
	char *word;

	need_layout(driver);
	if (page_build_init(&build, &driver->layout) < 0)
		fail("no memory");
	while ((word = next_word(&rest))) {
		size_t length;
		uint8_t *page = parse_bytes(word, &length);

		puts((build.is_open ? page_build_append : page_build_take)(&build, page, length) ?
			     "taken" :
			     "refused");
		free(page);
	}
	walk_page(driver, page_build_bytes(&build), driver->layout.size);
	page_build_free(&build);
}

static void run_cpus(struct driver *driver, char *rest)
{
	unsigned int cpus[MAX_CPUS];
	char *word;

	need_layout(driver);
	merge_free(driver->merge);
	driver->lane_count = 0;
	driver->item.kind = ITEM_NONE;
	while ((word = next_word(&rest))) {
		if (driver->lane_count == MAX_CPUS)
			fail("too many CPUs");
		cpus[driver->lane_count++] = (unsigned int)parse_number(word, "a CPU");
	}
	driver->merge = merge_create(&driver->layout, cpus, driver->lane_count, driver->lane_pages);
	if (!driver->merge)
		fail("no memory");
}

static void run_page(struct driver *driver, char *rest)
{
	unsigned int lane = parse_lane(driver, &rest);
	struct page_buffer *buffer;
	uint8_t *bytes;
	size_t length;

	bytes = parse_bytes(next_word(&rest), &length);
	if (length > driver->layout.size)
		fail("a page has no more than %u bytes", driver->layout.size);
	buffer = merge_get_buffer(driver->merge);
	if (!buffer)
		fail("no memory");
	memcpy(buffer->bytes, bytes, length);
	buffer->length = length;
	free(bytes);
	merge_push(driver->merge, lane, buffer);
	driver->item.kind = ITEM_NONE;
}

static void print_item(const struct item *item)
{
	static const char *const why[] = {
		[LOSS_OVERRUN] = "overrun",
		[LOSS_DROPPED] = "dropped",
		[LOSS_COMMIT_OVERRUN] = "commit_overrun",
		[LOSS_DAMAGED] = "damaged",
	};

	switch (item->kind) {
	case ITEM_EVENT:
		printf("event %" PRIu64 " %u %u %s ", item->event.ts, item->event.cpu,
		       item->event.size, item->event.late ? "late" : "-");
		print_bytes(item->event.data, item->event.size);
		break;
	case ITEM_LOST:
		fputs("lost ", stdout);
		print_count(item->loss.count);
		printf(" %" PRIu64 " %" PRIu64 " %u %s\n", item->loss.after_ts,
		       item->loss.before_ts, item->loss.cpu, why[item->loss.why]);
		break;
	default:
		puts("none");
		break;
	}
}

static void run_next(struct driver *driver, char *rest, bool all)
{
	uint64_t watermark = parse_number(next_word(&rest), "the watermark");

	need_merge(driver);
	do {
		if (merge_next(driver->merge, watermark, &driver->item) != driver->item.kind)
			fail("the item is of another kind than what merge_next() said");
		print_item(&driver->item);
	} while (all && driver->item.kind != ITEM_NONE);
}

static void run_state(struct driver *driver, char *rest)
{
	unsigned int lane = parse_lane(driver, &rest);

	printf("state %s %s start %" PRIu64 " late %" PRIu64 "\n",
	       merge_is_empty(driver->merge) ? "empty" : "waiting",
	       merge_is_full(driver->merge, lane) ? "full" : "open",
	       merge_newest_start(driver->merge, lane), merge_late(driver->merge));
}

static void run_line(struct driver *driver, char *line)
{
	char *rest = line;
	const char *command = next_word(&rest);

	if (!command)
		return;
	if (strcmp(command, "header") == 0)
		run_header(driver, rest);
	else if (strcmp(command, "walk") == 0)
		run_walk(driver, rest);
	else if (strcmp(command, "build") == 0)
		run_build(driver, rest);
	else if (strcmp(command, "lanes") == 0)
		driver->lane_pages = (unsigned int)parse_number(next_word(&rest), "lanes");
	else if (strcmp(command, "cpus") == 0)
		run_cpus(driver, rest);
	else if (strcmp(command, "page") == 0)
		run_page(driver, rest);
	else if (strcmp(command, "next") == 0)
		run_next(driver, rest, false);
	else if (strcmp(command, "drain") == 0)
		run_next(driver, rest, true);
	else if (strcmp(command, "again") == 0)
		print_item(&driver->item);
	else if (strcmp(command, "state") == 0)
		run_state(driver, rest);
	else
		fail("unknown command '%s'", command);
}

int main(void)
{
	struct driver driver = { .lane_pages = 1024 };
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) >= 0)
		run_line(&driver, line);
	free(line);
	merge_free(driver.merge);
	return fflush(stdout) ? 1 : 0;
}
