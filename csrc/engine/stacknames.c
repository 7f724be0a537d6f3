/* SPDX-License-Identifier: MIT */
#include "stacknames.h"

#include <stdlib.h>
#include <string.h>

#include "ksym.h"
#include "usersym.h"
#include "value.h"

/* The address that stands in a stack for the tracer's own trampoline. */
#define TRAMPOLINE_MARKER UINT64_C(0x7fffffff)

/* More frames than any kernel records; what a damaged file has beyond them is left out. */
#define FRAMES_MAX 1024

struct stack_names {
	struct usersym_table *users; /* NULL: the processes are not here */
	struct strbuf text[STACK_KINDS];
	struct strbuf frame;
};

struct stack_names *stack_names_create(void)
{
	return calloc(1, sizeof(struct stack_names));
}

void stack_names_free(struct stack_names *names)
{
	if (!names)
		return;
	usersym_free(names->users);
	for (unsigned int i = 0; i < STACK_KINDS; i++)
		strbuf_free(&names->text[i]);
	strbuf_free(&names->frame);
	free(names);
}

void stack_names_set_live(struct stack_names *names)
{
	if (!names->users)
		names->users = usersym_create();
}

static void add_frame(struct strbuf *out, const char *name)
{
	if (out->length)
		strbuf_add_char(out, ';');
	for (; *name; name++) {
		unsigned char byte = (unsigned char)*name;

		strbuf_add_char(out, byte < ' ' || byte == 0x7f || byte == ';' ? '?' : *name);
	}
}

static bool begins_with(const char *name, const char *start)
{
	return strncmp(name, start, strlen(start)) == 0;
}

/* Functions by which an event is recorded; they say nothing about who caused it. */
static bool is_tracing(const char *name)
{
	return begins_with(name, "trace_event_raw_event_") ||
	       begins_with(name, "do_trace_event_raw_event_") ||
	       begins_with(name, "__traceiter_") || begins_with(name, "trace_event_buffer_") ||
	       begins_with(name, "event_triggers_") || begins_with(name, "ftrace_syscall_");
}

static const char *kernel_name(struct stack_names *names, const struct event_format *format,
			       uint64_t address)
{
	struct ksym symbol;

	if (address == TRAMPOLINE_MARKER)
		return "[ftrace]";
	if (ksym_lookup(catalog_ksyms(format->catalog), address, &symbol) == 0)
		return symbol.name;
	strbuf_reset(&names->frame);
	strbuf_addf(&names->frame, "0x%llx", (unsigned long long)address);
	return names->frame.failed ? "?" : names->frame.text;
}

/* The frames of a stack's record, from the innermost on; 0 when it makes no sense. */
static uint32_t read_frames(const struct event_format *format, const uint8_t *data, uint32_t size,
			    uint64_t end, uint64_t frames[FRAMES_MAX])
{
	int index = format_field_index(format, "caller");
	const struct event_field *field;
	struct value value;
	uint32_t count;

	if (index < 0)
		return 0;
	field = &format->fields[index];
	if (field->kind != FIELD_ARRAY || value_read(format, field, data, size, &value) < 0)
		return 0;
	count = value_count(field, &value);
	if (count > FRAMES_MAX)
		count = FRAMES_MAX;
	for (uint32_t i = 0; i < count; i++) {
		frames[i] = (uint64_t)value_element(format, field, &value, i);
		if (frames[i] == end)
			return i;
	}
	return count;
}

static void add_kernel(struct stack_names *names, const struct event_stacks *stacks,
		       struct strbuf *out)
{
	const struct event_format *format = stacks->kernel_format;
	uint64_t frames[FRAMES_MAX];
	uint32_t first = 0, count;

	/* Older kernels end it with an address of ones. */
	count = read_frames(format, stacks->kernel, stacks->kernel_size,
			    UINT64_MAX >> (64 - 8 * format->long_size), frames);
	while (first < count && is_tracing(kernel_name(names, format, frames[first])))
		first++;
	while (count > first)
		add_frame(out, kernel_name(names, format, frames[--count]));
}

static int tgid_of(const struct event_stacks *stacks)
{
	const struct event_format *format = stacks->user_format;
	int index = format_field_index(format, "tgid");
	int64_t tgid;

	if (index < 0 || format->fields[index].kind != FIELD_INT ||
	    value_read_int(format, &format->fields[index], stacks->user, stacks->user_size, &tgid))
		return 0;
	return (int)tgid;
}

static void add_user(struct stack_names *names, const struct event_stacks *stacks,
		     struct strbuf *out)
{
	int tgid = tgid_of(stacks);
	uint64_t frames[FRAMES_MAX];
	uint32_t count;

	count = read_frames(stacks->user_format, stacks->user, stacks->user_size, 0, frames);
	while (count > 0) {
		/* All but the innermost are places that are returned to, behind the call. */
		uint64_t address = frames[--count];

		if (names->users && count > 0)
			address--;
		strbuf_reset(&names->frame);
		if (names->users)
			usersym_add(names->users, &names->frame, tgid, address);
		else
			strbuf_addf(&names->frame, "0x%llx", (unsigned long long)address);
		if (!names->frame.failed)
			add_frame(out, names->frame.text);
	}
}

const struct strbuf *stack_names_text(struct stack_names *names, const struct event_stacks *stacks,
				      enum stack_kind kind)
{
	struct strbuf *out = &names->text[kind];

	strbuf_reset(out);
	if (kind == STACK_KERNEL && stacks->kernel)
		add_kernel(names, stacks, out);
	else if (kind == STACK_USER && stacks->user)
		add_user(names, stacks, out);
	else
		return NULL;
	/* An empty stack is one, too. */
	if (!out->length)
		strbuf_add(out, "", 0);
	return out->failed ? NULL : out;
}
