/* SPDX-License-Identifier: MIT */
#include "clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "strbuf.h"
#include "tracefile.h"

#define NS_PER_S 1000000000

static int64_t offset_of(const char *text, const char *name)
{
	int64_t seconds, ns;
	const char *line = strstr(text, name);

	if (!line || sscanf(line + strlen(name), "%" SCNd64 " %" SCNd64, &seconds, &ns) != 2)
		return 0;
	return seconds * NS_PER_S + ns;
}

struct clock_offsets clock_offsets_read(void)
{
	struct clock_offsets offsets = { 0 };
	struct strbuf text = { 0 };

	/* time_namespaces(7); no such file before Linux 5.6 */
	if (tracefile_read(AT_FDCWD, "/proc/self/timens_offsets", &text) == 0) {
		offsets.monotonic_ns = offset_of(text.text, "monotonic");
		offsets.boottime_ns = offset_of(text.text, "boottime");
	}
	strbuf_free(&text);
	return offsets;
}

/* Documentation/trace/ftrace.rst, trace_clock; kernel/trace/trace.c: trace_clocks[] */
static const struct trace_clock clocks[] = {
	{ "local", true, false, 0, 0 },
	{ "global", true, false, 0, 0 },
	{ "perf", true, false, 0, 0 },
	{ "mono", true, true, CLOCK_MONOTONIC, 0 },
	{ "mono_raw", true, true, CLOCK_MONOTONIC_RAW, 0 },
	{ "boot", true, true, CLOCK_BOOTTIME, 0 },
	{ "tai", true, true, CLOCK_TAI, 0 },
};

struct trace_clock trace_clock_find(const char *name, const struct clock_offsets *offsets)
{
	struct trace_clock clock = { .name = "" };

	for (size_t i = 0; i < sizeof(clocks) / sizeof(clocks[0]); i++) {
		if (strcmp(clocks[i].name, name) == 0)
			clock = clocks[i];
	}
	if (clock.readable && clock.id == CLOCK_BOOTTIME)
		clock.ahead_ns = offsets->boottime_ns;
	else if (clock.readable && clock.id != CLOCK_TAI)
		clock.ahead_ns = offsets->monotonic_ns;
	return clock;
}

uint64_t trace_clock_now(const struct trace_clock *clock)
{
	struct timespec now;

	clock_gettime(clock->id, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec - (uint64_t)clock->ahead_ns;
}

void clock_sleep_ms(long ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}
