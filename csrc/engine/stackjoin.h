/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_STACKJOIN_H
#define LUATRACE_STACKJOIN_H

#include <stdbool.h>
#include <stdint.h>

#include "format.h"
#include "stream.h"

/*
 * The stacks of one event: records of ftrace:kernel_stack and ftrace:user_stack, borrowed as
 * the event itself is, NULL when none came with it. The formats are their catalog's.
 */
struct event_stacks {
	const struct event_format *kernel_format;
	const struct event_format *user_format;
	const uint8_t *kernel;
	const uint8_t *user;
	uint32_t kernel_size;
	uint32_t user_size;
	bool wants_kernel; /* somebody has asked for it */
	bool wants_user;
};

/*
 * Brings events their stacks. The kernel writes a stack as a record of its own behind its
 * event, with nothing in between on that CPU but what interrupts, which run above it, have
 * written. So it is looked for there before the event is handed out; where something is lost
 * in between, or another record of the same context comes first, the event has none. Whose
 * event is lost is a stack that nobody looks for.
 */
struct stack_joiner;

/*
 * @kernel and @user say what the records of stacks look like, NULL where there are none of that
 * kind. Freed with stack_joiner_free(). NULL when memory is short.
 */
struct stack_joiner *stack_joiner_create(const struct catalog *catalog,
					 const struct event_format *kernel,
					 const struct event_format *user);
void stack_joiner_free(struct stack_joiner *joiner);

/* From now on the events of @id get these stacks, besides those that were asked for before. */
void stack_joiner_want(struct stack_joiner *joiner, uint16_t id, bool kernel, bool user);

/*
 * stream_next() without the records of stacks. An event that has some has @stacks. ITEM_NONE
 * also while the stack of an event may still come.
 */
enum item_kind stack_joiner_next(struct stack_joiner *joiner, struct stream *stream,
				 struct item *item);

#endif
