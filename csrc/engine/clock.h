/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_CLOCK_H
#define LUATRACE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*
 * How far this process's clocks are ahead of the kernel's own, which records have: not at all,
 * but in a time namespace.
 */
struct clock_offsets {
	int64_t monotonic_ns; /* of CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW */
	int64_t boottime_ns;
};

struct clock_offsets clock_offsets_read(void);

/* A trace clock, by its name in the trace_clock file. */
struct trace_clock {
	const char *name;
	bool in_ns;    /* else a plain count */
	bool readable; /* user space can read the same clock, as @id */
	clockid_t id;
	int64_t ahead_ns; /* what @id reads more than the kernel does */
};

/* A name that is not known gives a clock that is neither in ns nor readable. */
struct trace_clock trace_clock_find(const char *name, const struct clock_offsets *offsets);

/* What the kernel reads now, in ns; of a readable clock. */
uint64_t trace_clock_now(const struct trace_clock *clock);

/* Sleeps so long, or until a signal. */
void clock_sleep_ms(long ms);

#endif
