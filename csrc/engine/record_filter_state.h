/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_RECORD_FILTER_STATE_H
#define LUATRACE_RECORD_FILTER_STATE_H

#include "record_filter.h"

/* What the parser of filters leaves for what evaluates them. */

/* kernel/trace/trace_events_filter.c: enum filter_op_ids */
enum filter_op {
	FILTER_GLOB,
	FILTER_NE,
	FILTER_EQ,
	FILTER_LE,
	FILTER_LT,
	FILTER_GE,
	FILTER_GT,
	FILTER_BAND,
};

enum filter_node_kind {
	NODE_AND,
	NODE_OR,
	NODE_NOT,
	NODE_NUMBER,   /* @field or the CPU against @number */
	NODE_STRING,   /* @field or the command name against @text */
	NODE_FUNCTION, /* @field is an address inside of the function @text */
	NODE_MASK,     /* @field, a set of CPUs, against @cpus */
	NODE_IN_MASK,  /* @field, a number or the CPU, against @cpus */
};

/* kernel/trace/trace_events_filter.c: filter_parse_regex() */
enum filter_match {
	MATCH_FULL,
	MATCH_FRONT,
	MATCH_MIDDLE,
	MATCH_END,
	MATCH_GLOB,
};

struct filter_node {
	enum filter_node_kind kind;
	enum filter_op op;
	const struct event_field *field; /* NULL: the CPU or the command name */
	bool is_signed;
	bool is_negated; /* a glob that begins with '!' */
	enum filter_match match;
	int64_t number;
	char *text;
	size_t text_length;
	uint64_t *cpus; /* bits */
	unsigned int cpu_words;
	int left, right; /* nodes */
};

struct record_filter {
	const struct event_format *format;
	struct filter_node *nodes;
	unsigned int count;
	unsigned int capacity;
	int root;
};

#endif
