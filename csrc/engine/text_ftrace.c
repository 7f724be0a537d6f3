/* SPDX-License-Identifier: MIT */
#include "text_kernel.h"

#include <string.h>

#include "comm.h"
#include "printk.h"
#include "value.h"

/* The address that stands in a stack for the tracer's own trampoline. */
#define TRAMPOLINE_MARKER UINT64_C(0x7fffffff)

static const struct event_field *text_find(const struct text_record *record, const char *name)
{
	int index = format_field_index(record->format, name);

	return index < 0 ? NULL : &record->format->fields[index];
}

/* Reads a field that is no number; false when it is missing. */
static bool text_read(const struct text_record *record, const char *name, struct value *value)
{
	const struct event_field *field = text_find(record, name);

	return field && field->kind != FIELD_INT &&
	       !value_read(record->format, field, record->data, record->size, value);
}

uint64_t text_number(const struct text_record *record, const char *name)
{
	const struct event_field *field = text_find(record, name);
	int64_t number;

	if (!field || field->kind != FIELD_INT ||
	    value_read_int(record->format, field, record->data, record->size, &number))
		return 0;
	return (uint64_t)number;
}

static void add_function(struct strbuf *out, const struct text_record *record)
{
	uint64_t parent = text_number(record, "parent_ip");

	text_add_symbol(out, record->format, text_number(record, "ip"));
	if (parent) {
		strbuf_add_string(out, " <-");
		text_add_symbol(out, record->format, parent);
	}
}

static enum text_result text_function(struct strbuf *out, const struct text_record *record)
{
	add_function(out, record);
	return TEXT_DONE;
}

static enum text_result text_func_repeats(struct strbuf *out, const struct text_record *record)
{
	uint64_t delta = text_number(record, "top_delta_ts") << 32 |
			 text_number(record, "bottom_delta_ts");

	if (!record->event)
		return TEXT_NOT_MINE;
	add_function(out, record);
	strbuf_addf(out, " (repeats: %u, last_ts:", (unsigned int)text_number(record, "count"));
	text_add_time(out, record->event->ts - delta, record->style);
	strbuf_add_char(out, ')');
	return TEXT_DONE;
}

/* "RSDTtXZPI", in the order of the kernel's task states. */
static char state_letter(uint64_t state)
{
	static const char letters[] = "RSDTtXZPI";

	return state < sizeof(letters) - 1 ? letters[state] : '?';
}

static enum text_result text_switch(struct strbuf *out, const struct text_record *record,
				    const char *arrow)
{
	int pid = (int)text_number(record, "next_pid");

	strbuf_addf(out, " %7d:%3d:%c %s [%03d] %7d:%3d:%c ", (int)text_number(record, "prev_pid"),
		    (int)text_number(record, "prev_prio"),
		    state_letter(text_number(record, "prev_state")), arrow,
		    (int)text_number(record, "next_cpu"), pid,
		    (int)text_number(record, "next_prio"),
		    state_letter(text_number(record, "next_state")));
	arrow = comm_lookup(catalog_comms(record->format->catalog), pid);
	text_add_safe(out, arrow, strlen(arrow));
	return TEXT_DONE;
}

static enum text_result text_context_switch(struct strbuf *out, const struct text_record *record)
{
	return text_switch(out, record, "==>");
}

static enum text_result text_wakeup(struct strbuf *out, const struct text_record *record)
{
	return text_switch(out, record, "  +");
}

static enum text_result text_kernel_stack(struct strbuf *out, const struct text_record *record)
{
	const struct event_field *field = text_find(record, "caller");
	const struct event_format *format = record->format;
	struct value value;

	if (!field || field->kind != FIELD_ARRAY || !text_read(record, "caller", &value))
		return TEXT_NOT_MINE;
	strbuf_add_string(out, "<stack trace>\n");
	for (uint32_t i = 0; i < value_count(field, &value); i++) {
		uint64_t address = (uint64_t)value_element(format, field, &value, i);

		if (address == UINT64_MAX >> (64 - 8 * format->long_size))
			break;
		strbuf_add_string(out, " => ");
		if (address == TRAMPOLINE_MARKER)
			strbuf_add_string(out, "[FTRACE TRAMPOLINE]");
		else
			text_add_symbol(out, format, address);
		strbuf_add_char(out, '\n');
	}
	return TEXT_DONE;
}

static enum text_result text_user_stack(struct strbuf *out, const struct text_record *record)
{
	const struct event_field *field = text_find(record, "caller");
	const struct event_format *format = record->format;
	struct value value;

	if (!field || field->kind != FIELD_ARRAY || !text_read(record, "caller", &value))
		return TEXT_NOT_MINE;
	strbuf_add_string(out, "<user stack trace>\n");
	for (uint32_t i = 0; i < value_count(field, &value); i++) {
		uint64_t address = (uint64_t)value_element(format, field, &value, i);

		if (!address)
			break;
		strbuf_addf(out, " =>  <%0*llx>\n", format->long_size * 2,
			    (unsigned long long)address);
	}
	return TEXT_DONE;
}

/* Lines that programs write may be several; only they end where they say. */
static void add_lines(struct strbuf *out, const char *text, size_t length)
{
	const char *newline;

	while ((newline = length ? memchr(text, '\n', length) : NULL)) {
		text_add_safe(out, text, (size_t)(newline - text));
		strbuf_add_char(out, '\n');
		length -= (size_t)(newline + 1 - text);
		text = newline + 1;
	}
	text_add_safe(out, text, length);
}

static void add_caller(struct strbuf *out, const struct text_record *record)
{
	text_add_symbol(out, record->format, text_number(record, "ip"));
	strbuf_add_string(out, ": ");
}

static enum text_result text_print(struct strbuf *out, const struct text_record *record)
{
	struct value value;

	if (!text_read(record, "buf", &value) || value.kind != FIELD_STRING)
		return TEXT_NOT_MINE;
	add_caller(out, record);
	add_lines(out, (const char *)value.bytes, value.length);
	return TEXT_DONE;
}

static enum text_result text_bputs(struct strbuf *out, const struct text_record *record)
{
	struct printk_table *strings = catalog_printks(record->format->catalog);
	const char *text = printk_lookup(strings, text_number(record, "str"));

	if (!text)
		return TEXT_NOT_MINE;
	add_caller(out, record);
	add_lines(out, text, strlen(text));
	return TEXT_DONE;
}

static enum text_result text_bprint(struct strbuf *out, const struct text_record *record)
{
	struct printk_table *strings = catalog_printks(record->format->catalog);
	const char *text = printk_lookup(strings, text_number(record, "fmt"));
	struct strbuf message = { 0 };
	struct value value;

	if (!text || !text_read(record, "buf", &value))
		return TEXT_NOT_MINE;
	add_caller(out, record);
	text_add_bprintf(&message, record->format, text, value.bytes, value.length);
	if (message.text)
		add_lines(out, message.text, message.length);
	strbuf_free(&message);
	return TEXT_DONE;
}

static enum text_result text_raw_data(struct strbuf *out, const struct text_record *record)
{
	struct value value;

	if (!text_read(record, "buf", &value))
		return TEXT_NOT_MINE;
	strbuf_addf(out, "# %x buf:", (unsigned int)text_number(record, "id"));
	for (uint32_t i = 0; i < value.length; i++)
		strbuf_addf(out, " %02x", value.bytes[i]);
	return TEXT_DONE;
}

static enum text_result text_hwlat(struct strbuf *out, const struct text_record *record)
{
	uint64_t nmis = text_number(record, "nmi_count");

	strbuf_addf(out, "#%-5u inner/outer(us): %4llu/%-5llu ts:%lld.%09lld count:%d",
		    (unsigned int)text_number(record, "seqnum"),
		    (unsigned long long)text_number(record, "duration"),
		    (unsigned long long)text_number(record, "outer_duration"),
		    (long long)text_number(record, "tv_sec"),
		    (long long)text_number(record, "tv_nsec"), (int)text_number(record, "count"));
	if (nmis)
		strbuf_addf(out, " nmi-total:%llu nmi-count:%u",
			    (unsigned long long)text_number(record, "nmi_total_ts"),
			    (unsigned int)nmis);
	return TEXT_DONE;
}

static enum text_result text_osnoise(struct strbuf *out, const struct text_record *record)
{
	uint64_t runtime = text_number(record, "runtime"), noise = text_number(record, "noise");
	uint64_t ratio = runtime ? (runtime - noise) * 10000000 / runtime : 0;

	strbuf_addf(out, "%llu %10llu %3llu.%05llu %7llu", (unsigned long long)runtime,
		    (unsigned long long)noise, (unsigned long long)(ratio / 100000),
		    (unsigned long long)(ratio % 100000),
		    (unsigned long long)text_number(record, "max_sample"));
	strbuf_addf(out, " %6u %6u %6u %6u %6u", (unsigned int)text_number(record, "hw_count"),
		    (unsigned int)text_number(record, "nmi_count"),
		    (unsigned int)text_number(record, "irq_count"),
		    (unsigned int)text_number(record, "softirq_count"),
		    (unsigned int)text_number(record, "thread_count"));
	return TEXT_DONE;
}

static enum text_result text_timerlat(struct strbuf *out, const struct text_record *record)
{
	static const char *const contexts[] = { "irq", "thread", "user-ret" };
	uint64_t context = text_number(record, "context");

	strbuf_addf(out, "#%-5u context %6s timer_latency %9llu ns",
		    (unsigned int)text_number(record, "seqnum"),
		    context < 3 ? contexts[context] : "?",
		    (unsigned long long)text_number(record, "timer_latency"));
	return TEXT_DONE;
}

static enum text_result text_branch(struct strbuf *out, const struct text_record *record)
{
	struct value function, file;

	if (!text_read(record, "func", &function) || !text_read(record, "file", &file))
		return TEXT_NOT_MINE;
	strbuf_addf(out, "[%s] ", text_number(record, "correct") ? "  ok  " : " MISS ");
	text_add_safe(out, (const char *)function.bytes, function.length);
	strbuf_add_char(out, ':');
	text_add_safe(out, (const char *)file.bytes, file.length);
	strbuf_addf(out, ":%d", (int)text_number(record, "line"));
	return TEXT_DONE;
}

enum text_result text_ftrace(struct strbuf *out, const struct text_record *record)
{
	static const struct {
		const char *name;
		enum text_result (*print)(struct strbuf *out, const struct text_record *record);
	} printers[] = {
		{ "bprint", text_bprint },
		{ "bputs", text_bputs },
		{ "branch", text_branch },
		{ "context_switch", text_context_switch },
		{ "func_repeats", text_func_repeats },
		{ "function", text_function },
		{ "hwlat", text_hwlat },
		{ "kernel_stack", text_kernel_stack },
		{ "osnoise", text_osnoise },
		{ "print", text_print },
		{ "raw_data", text_raw_data },
		{ "timerlat", text_timerlat },
		{ "user_stack", text_user_stack },
		{ "wakeup", text_wakeup },
	};

	for (size_t i = 0; i < sizeof(printers) / sizeof(printers[0]); i++)
		if (!strcmp(record->format->name, printers[i].name))
			return printers[i].print(out, record);
	return TEXT_NOT_MINE;
}
