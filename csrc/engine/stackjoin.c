/* SPDX-License-Identifier: MIT */
#include "stackjoin.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* kernel: struct trace_entry and include/linux/trace_events.h, as in own.c */
#define ENTRY_FLAGS_OFFSET 2
#define ENTRY_SIZE 8
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10
#define FLAG_NMI 0x40
#define FLAGS_GARBAGE 0xff

/* How long an event waits for its stack: a virtual CPU may be stopped between the two. */
#define PATIENCE_NS INT64_C(1000000000)

/* More records of interrupts than that do not fit between an event and its stack. */
#define RECORDS_MAX 4096

enum {
	WANT_KERNEL = 1,
	WANT_USER = 2,
};

struct stack_joiner {
	const struct catalog *catalog;
	int kernel_id; /* -1: there are none */
	int user_id;
	struct event_stacks stacks; /* of the event that was handed out last */
	/* the event whose stack may still come, with a copy of its bytes */
	struct event held;
	bool is_held;
	bool was_last; /* of its sub-buffer */
	int64_t held_since;
	uint8_t *bytes;
	uint32_t room;
	uint8_t wanted[UINT16_MAX + 1];
};

struct stack_joiner *stack_joiner_create(const struct catalog *catalog,
					 const struct event_format *kernel,
					 const struct event_format *user)
{
	struct stack_joiner *joiner = calloc(1, sizeof(*joiner));

	if (!joiner)
		return NULL;
	joiner->catalog = catalog;
	joiner->kernel_id = kernel ? kernel->id : -1;
	joiner->user_id = user ? user->id : -1;
	joiner->stacks.kernel_format = kernel;
	joiner->stacks.user_format = user;
	return joiner;
}

void stack_joiner_free(struct stack_joiner *joiner)
{
	if (!joiner)
		return;
	free(joiner->bytes);
	free(joiner);
}

void stack_joiner_want(struct stack_joiner *joiner, uint16_t id, bool kernel, bool user)
{
	joiner->wanted[id] |= (kernel ? WANT_KERNEL : 0) | (user ? WANT_USER : 0);
}

/* Which of the contexts that interrupt each other a record is from. */
static unsigned int context_of(const uint8_t *data, uint32_t size)
{
	uint8_t flags = size < ENTRY_SIZE ? 0 : data[ENTRY_FLAGS_OFFSET];

	if (flags == FLAGS_GARBAGE)
		return 0;
	if (flags & FLAG_NMI)
		return 3;
	if (flags & FLAG_HARDIRQ)
		return 2;
	return flags & FLAG_SOFTIRQ ? 1 : 0;
}

static bool has_all(const struct event_stacks *stacks)
{
	return (stacks->kernel || !stacks->wants_kernel) && (stacks->user || !stacks->wants_user);
}

/* Takes a record that may be a stack of the event; false when it is another event. */
static bool take(struct stack_joiner *joiner, const struct page_record *record)
{
	struct event_stacks *stacks = &joiner->stacks;
	int id = catalog_record_type(joiner->catalog, record->data, record->size);

	if (id < 0 || (id != joiner->kernel_id && id != joiner->user_id))
		return false;
	if (id == joiner->kernel_id && stacks->wants_kernel && !stacks->kernel) {
		stacks->kernel = record->data;
		stacks->kernel_size = record->size;
	} else if (id == joiner->user_id && stacks->wants_user && !stacks->user) {
		stacks->user = record->data;
		stacks->user_size = record->size;
	}
	return true;
}

/* Looks for the stacks of @event; false when they may still come. */
static bool look(struct stack_joiner *joiner, struct stream *stream, const struct event *event,
		 bool was_last)
{
	const struct merge *merge = stream_merge(stream);
	unsigned int context = context_of(event->data, event->size);
	int pid = catalog_record_pid(joiner->catalog, event->data, event->size);
	bool may_skip = stream_may_skip(stream, event->lane);
	struct merge_peek peek = { 0 };
	struct page_record record;

	joiner->stacks.kernel = NULL;
	joiner->stacks.kernel_size = 0;
	joiner->stacks.user = NULL;
	joiner->stacks.user_size = 0;
	for (unsigned int i = 0; i < RECORDS_MAX; i++) {
		unsigned int other;

		switch (merge_peek(merge, event->lane, &peek, &record)) {
		case PEEK_RECORD:
			break;
		case PEEK_GAP:
			return true;
		case PEEK_END:
			return false;
		}
		/* a full buffer leaves records out where a sub-buffer ends, and says so nowhere */
		if (may_skip && (was_last || peek.turned))
			return true;
		other = context_of(record.data, record.size);
		if (other > context)
			continue;
		if (other < context ||
		    catalog_record_pid(joiner->catalog, record.data, record.size) != pid ||
		    !take(joiner, &record) || has_all(&joiner->stacks))
			return true;
	}
	return true;
}

static int64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Keeps what will be overwritten when the stream is asked for more; false when memory is short. */
static bool hold(struct stack_joiner *joiner, const struct event *event, bool was_last)
{
	if (event->size > joiner->room) {
		uint8_t *bytes = realloc(joiner->bytes, event->size);

		if (!bytes)
			return false;
		joiner->bytes = bytes;
		joiner->room = event->size;
	}
	memcpy(joiner->bytes, event->data, event->size);
	joiner->held = *event;
	joiner->held.data = joiner->bytes;
	joiner->held_since = monotonic_now();
	joiner->was_last = was_last;
	joiner->is_held = true;
	return true;
}

/* False when the event has to wait. */
static bool join_held(struct stack_joiner *joiner, struct stream *stream)
{
	while (!look(joiner, stream, &joiner->held, joiner->was_last)) {
		enum stream_more more = stream_more(stream, joiner->held.lane);

		if (more == MORE_LATER && monotonic_now() - joiner->held_since < PATIENCE_NS)
			return false;
		if (more != MORE_NOW)
			return true;
	}
	return true;
}

static enum item_kind hand_out(struct stack_joiner *joiner, struct item *item)
{
	joiner->is_held = false;
	item->event.stacks = &joiner->stacks;
	return item->kind = ITEM_EVENT;
}

static enum item_kind next_held(struct stack_joiner *joiner, struct stream *stream,
				struct item *item)
{
	if (!join_held(joiner, stream))
		return item->kind = ITEM_NONE;
	item->event = joiner->held;
	return hand_out(joiner, item);
}

enum item_kind stack_joiner_next(struct stack_joiner *joiner, struct stream *stream,
				 struct item *item)
{
	bool was_last;
	uint8_t wanted;
	int id;

	if (joiner->is_held)
		return next_held(joiner, stream, item);
	do {
		if (stream_next(stream, item) != ITEM_EVENT)
			return item->kind;
		id = catalog_record_type(joiner->catalog, item->event.data, item->event.size);
	} while (id >= 0 && (id == joiner->kernel_id || id == joiner->user_id));
	wanted = id >= 0 ? joiner->wanted[id] : 0;
	if (!wanted)
		return ITEM_EVENT;

	joiner->stacks.wants_kernel = wanted & WANT_KERNEL;
	joiner->stacks.wants_user = wanted & WANT_USER;
	was_last = !merge_is_in_first(stream_merge(stream), item->event.lane, item->event.data);
	if (look(joiner, stream, &item->event, was_last) || !hold(joiner, &item->event, was_last))
		return hand_out(joiner, item);
	return next_held(joiner, stream, item);
}
