/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "comm.h"
#include "ksym.h"
#include "record_filter_state.h"
#include "value.h"

/* lib/glob.c: one character of a set, at the '['. False: the set does not end. */
static bool in_set(const char **at, const char *end, unsigned char c, bool *is_in)
{
	const char *set = *at + 1;
	bool inverted = set < end && *set == '!';
	bool found = false;
	const char *first;

	set += inverted;
	first = set;
	/* a ']' at the first place stands for itself */
	while (set < end && (*set != ']' || set == first)) {
		unsigned char low = (unsigned char)*set++, high = low;

		if (end - set >= 2 && set[0] == '-' && set[1] != ']') {
			high = (unsigned char)set[1];
			set += 2;
		}
		found = found || (c >= low && c <= high);
	}
	if (set >= end)
		return false;
	*at = set + 1;
	*is_in = found != inverted;
	return true;
}

/* Does the one character at @text stand for the pattern's at @at? Moves @at behind it. */
static bool matches_one(const char **at, const char *end, unsigned char c)
{
	bool is_in;

	switch (**at) {
	case '?':
		(*at)++;
		return true;
	case '[':
		if (in_set(at, end, c, &is_in))
			return is_in;
		break; /* it stands for itself */
	case '\\':
		if (*at + 1 < end)
			(*at)++;
		break;
	default:
		break;
	}
	return (unsigned char)*(*at)++ == c;
}

/* As glob_match() does: only the last star has to be gone back to. */
static bool glob_matches(const char *pattern, size_t length, const char *text, size_t text_length)
{
	const char *end = pattern + length, *text_end = text + text_length;
	const char *back = NULL, *back_text = NULL;

	for (;;) {
		if (pattern < end && *pattern == '*') {
			if (++pattern == end)
				return true;
			back = pattern;
			back_text = text;
			continue;
		}
		if (text == text_end)
			return pattern == end;
		if (pattern < end && matches_one(&pattern, end, (unsigned char)*text)) {
			text++;
			continue;
		}
		if (!back)
			return false;
		pattern = back;
		text = ++back_text;
	}
}

static bool string_matches(const struct filter_node *node, const char *text, size_t length)
{
	size_t wanted = node->text_length;

	switch (node->match) {
	case MATCH_FULL:
		return length == wanted && memcmp(text, node->text, wanted) == 0;
	case MATCH_FRONT:
		return length >= wanted && memcmp(text, node->text, wanted) == 0;
	case MATCH_END:
		return length >= wanted && memcmp(text + length - wanted, node->text, wanted) == 0;
	case MATCH_MIDDLE:
		return !wanted || memmem(text, length, node->text, wanted);
	default:
		return glob_matches(node->text, wanted, text, length);
	}
}

static bool test_string(const struct record_filter *filter, const struct filter_node *node,
			const struct event *event)
{
	struct catalog *catalog = filter->format->catalog;
	bool wants_equal = (node->op != FILTER_NE) != node->is_negated;
	struct value value;
	const char *comm;

	if (!node->field) {
		comm = comm_lookup(catalog_comms(catalog),
				   catalog_record_pid(catalog, event->data, event->size));
		return string_matches(node, comm, strlen(comm)) == wants_equal;
	}
	if (value_read(filter->format, node->field, event->data, event->size, &value))
		return false;
	/* bytes that are no text to us are text to the kernel's filters: up to the first NUL */
	return string_matches(node, (const char *)value.bytes,
			      strnlen((const char *)value.bytes, value.length)) == wants_equal;
}

/* The number as the kernel's comparison sees it: all bytes of the field. */
static bool load_number(const struct record_filter *filter, const struct filter_node *node,
			const struct event *event, int64_t *number)
{
	const struct event_field *field = node->field;

	if (!field) {
		*number = event->cpu;
		return true;
	}
	if (field->end > event->size)
		return false;
	*number = load_int(event->data + field->offset, field->size, node->is_signed,
			   filter->format->swaps);
	return true;
}

/* As if the number stood in a variable of the field's type. */
static int64_t as_field(const struct filter_node *node, int64_t number)
{
	unsigned int size = node->field ? node->field->size : 4;
	unsigned int shift = 64 - 8 * size;

	if (size >= 8)
		return number;
	return node->is_signed ? (int64_t)((uint64_t)number << shift) >> shift :
				 (int64_t)(((uint64_t)number << shift) >> shift);
}

static bool test_number(const struct record_filter *filter, const struct filter_node *node,
			const struct event *event)
{
	int64_t number, wanted = as_field(node, node->number);
	bool is_less, is_equal;

	if (!load_number(filter, node, event, &number))
		return false;
	is_equal = number == wanted;
	is_less = node->is_signed ? number < wanted : (uint64_t)number < (uint64_t)wanted;
	switch (node->op) {
	case FILTER_EQ:
		return is_equal;
	case FILTER_NE:
		return !is_equal;
	case FILTER_LT:
		return is_less;
	case FILTER_LE:
		return is_less || is_equal;
	case FILTER_GT:
		return !is_less && !is_equal;
	case FILTER_GE:
		return !is_less;
	default:
		return number & wanted;
	}
}

static bool test_function(const struct record_filter *filter, const struct filter_node *node,
			  const struct event *event)
{
	struct ksym symbol;
	int64_t address;
	bool is_in;

	if (!load_number(filter, node, event, &address))
		return false;
	is_in = ksym_lookup(catalog_ksyms(filter->format->catalog), (uint64_t)address, &symbol) ==
			0 &&
		strcmp(symbol.name, node->text) == 0;
	return is_in == (node->op == FILTER_EQ);
}

static bool cpu_wanted(const struct filter_node *node, uint64_t cpu)
{
	return cpu / 64 < node->cpu_words && node->cpus[cpu / 64] >> (cpu % 64) & 1;
}

static unsigned int cpus_wanted(const struct filter_node *node)
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < node->cpu_words; i++)
		count += (unsigned int)__builtin_popcountll(node->cpus[i]);
	return count;
}

static bool test_in_mask(const struct record_filter *filter, const struct filter_node *node,
			 const struct event *event)
{
	int64_t number;
	bool is_only;

	if (!load_number(filter, node, event, &number))
		return false;
	if (node->op == FILTER_BAND)
		return cpu_wanted(node, (uint64_t)number);
	is_only = cpu_wanted(node, (uint64_t)number) && cpus_wanted(node) == 1;
	return is_only == (node->op == FILTER_EQ);
}

static bool test_mask(const struct record_filter *filter, const struct filter_node *node,
		      const struct event *event)
{
	struct value value;
	bool is_equal = true, meets = false;
	uint32_t bits;

	if (value_read(filter->format, node->field, event->data, event->size, &value))
		return false;
	bits = value.length * 8;
	for (uint32_t bit = 0; bit < bits || bit < node->cpu_words * 64; bit++) {
		bool is_set = bit < bits && value_bit(filter->format, &value, bit);
		bool is_wanted = cpu_wanted(node, bit);

		meets = meets || (is_set && is_wanted);
		is_equal = is_equal && is_set == is_wanted;
	}
	if (node->op == FILTER_BAND)
		return meets;
	return is_equal == (node->op == FILTER_EQ);
}

static bool test(const struct record_filter *filter, int index, const struct event *event)
{
	const struct filter_node *node = &filter->nodes[index];

	switch (node->kind) {
	case NODE_AND:
		return test(filter, node->left, event) && test(filter, node->right, event);
	case NODE_OR:
		return test(filter, node->left, event) || test(filter, node->right, event);
	case NODE_NOT:
		return !test(filter, node->left, event);
	case NODE_NUMBER:
		return test_number(filter, node, event);
	case NODE_STRING:
		return test_string(filter, node, event);
	case NODE_FUNCTION:
		return test_function(filter, node, event);
	case NODE_MASK:
		return test_mask(filter, node, event);
	default:
		return test_in_mask(filter, node, event);
	}
}

bool record_filter_match(const struct record_filter *filter, const struct event *event)
{
	return test(filter, filter->root, event);
}
