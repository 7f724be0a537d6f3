/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PRINTTREE_H
#define LUATRACE_PRINTTREE_H

#include "format.h"

/*
 * A print format, parsed: its format string and the C expressions behind it.
 *
 * libtraceevent has such a parser too, but it follows null pointers when a print format
 * names a field that the event does not have, frees some nodes twice, hides which
 * function a call means, and does not know what newer kernels write. Format files come
 * from trace files as well, so the parser must stand any text.
 */

/* The type of a C number, or of what a pointer points to. */
struct print_type {
	uint8_t size; /* of the number in bytes; of a pointer: a long */
	bool is_signed;
	bool is_pointer;
	uint8_t target_size; /* of what a pointer points to; 0 for a type we do not know */
	bool target_signed;
};

enum print_node_kind {
	PRINT_NUMBER,
	PRINT_STRING,
	PRINT_FIELD,	     /* REC->name */
	PRINT_FIELD_ADDRESS, /* &REC->name */
	PRINT_NAME,	     /* an enum constant or a variable of the kernel */
	PRINT_UNARY,
	PRINT_BINARY,
	PRINT_TERNARY,
	PRINT_CAST,
	PRINT_INDEX, /* array[index], and *pointer as [0] */
	PRINT_CALL,
};

/* Two-character operators that are no other operator twice. */
enum print_op {
	OP_NOT = '!',
	OP_COMPLEMENT = '~',
	OP_MULTIPLY = '*',
	OP_DIVIDE = '/',
	OP_MODULO = '%',
	OP_ADD = '+',
	OP_SUBTRACT = '-',
	OP_LESS = '<',
	OP_GREATER = '>',
	OP_AND = '&',
	OP_XOR = '^',
	OP_OR = '|',
	OP_SHIFT_LEFT = 256,
	OP_SHIFT_RIGHT,
	OP_LESS_EQUAL,
	OP_GREATER_EQUAL,
	OP_EQUAL,
	OP_NOT_EQUAL,
	OP_LOGICAL_AND,
	OP_LOGICAL_OR,
};

enum print_function {
	PRINT_FLAGS,	/* __print_flags(value, delimiter, { mask, name }...) */
	PRINT_SYMBOLIC, /* __print_symbolic(value, { value, name }...) */
	PRINT_HEX,	/* __print_hex(bytes, length) */
	PRINT_HEX_STR,
	PRINT_HEX_DUMP,
	PRINT_ARRAY,	     /* __print_array(bytes, count, element size) */
	PRINT_DYNAMIC_ARRAY, /* __print_dynamic_array(field, element size) */
	PRINT_NS_TO_SECS,
	PRINT_NS_WITHOUT_SECS,
	PRINT_GET_STR,	 /* __get_str(field) */
	PRINT_GET_ARRAY, /* __get_dynamic_array(field) */
	PRINT_GET_ARRAY_LENGTH,
	PRINT_GET_BITMASK,
	PRINT_GET_STACK, /* __get_stacktrace(field) */
	PRINT_JIFFIES_TO_MSECS,
	PRINT_JIFFIES_TO_USECS,
};

struct print_node;

/* One { value, "name" } of a list. */
struct print_symbol {
	struct print_symbol *next;
	struct print_node *value;
	const char *name;
};

struct print_node {
	struct print_node *next; /* the next argument of a call or of the format */
	uint8_t kind;		 /* enum print_node_kind */
	uint8_t function;	 /* enum print_function of a PRINT_CALL */
	bool is_64bit;		 /* of PRINT_FLAGS and PRINT_SYMBOLIC */
	bool is_lookup_done;	 /* of PRINT_NAME: @is_known and @number are settled */
	bool is_known;
	int op;			/* enum print_op */
	uint16_t depth;		/* of the tree below, so that nobody recurses too far */
	uint32_t weight;	/* nodes visited to evaluate it */
	struct print_type type; /* of PRINT_NUMBER and PRINT_CAST */
	uint64_t number;
	const char *text; /* of PRINT_STRING and PRINT_NAME; a flag delimiter */
	size_t length;
	const struct event_field *field;
	struct print_node *a, *b, *c; /* operands; @a is the first argument of a call */
	struct print_symbol *symbols;
};

struct print_arena;

struct print_tree {
	struct print_arena *arena; /* everything below lives there */
	const char *format;	   /* escapes resolved; may hold NUL bytes */
	size_t format_length;
	struct print_node *args;
};

/* Parses format->print_fmt. NULL and a reason for a person when that cannot be done. */
struct print_tree *print_tree_parse(const struct event_format *format, struct trace_error *error);
void print_tree_free(struct print_tree *tree);

/* C's arithmetic, with its promotions. False for a division by 0 or a bad operator. */
bool print_apply(int op, uint64_t a, struct print_type a_type, uint64_t b, struct print_type b_type,
		 uint64_t *result, struct print_type *result_type);

/* @number cut to the width of @type and extended again. */
uint64_t print_narrow(uint64_t number, struct print_type type);

#endif
