/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_EVENT_H
#define LUATRACE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

struct event_stacks;

/*
 * One record of the ring buffer. @data points into a page and is borrowed:
 * whoever keeps a record copies it.
 */
struct event {
	uint64_t ts;	     /* in the clock's unit: ns for most clocks */
	const uint8_t *data; /* starts with common_type */
	uint32_t size;	     /* padded to 4 by the kernel */
	uint32_t cpu;
	uint16_t lane;	/* where the CPU stands in the stream's list: stream_cpu() */
	bool late;	/* older than one that was handed out before it */
	uint32_t scale; /* it stands for so many, see sample.h; 0: for itself */
	const struct event_stacks *stacks; /* NULL: nobody asked for them; see stackjoin.h */
};

#endif
