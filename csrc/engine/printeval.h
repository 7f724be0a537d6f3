/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PRINTEVAL_H
#define LUATRACE_PRINTEVAL_H

#include "printtree.h"
#include "strbuf.h"

/* Between the files that turn a record into text only. */

enum operand_kind {
	OPERAND_NUMBER,
	OPERAND_TEXT,  /* characters, @length of them */
	OPERAND_BYTES, /* a pointer into the record: what it points to */
};

struct operand {
	enum operand_kind kind;
	uint64_t number;
	struct print_type type; /* of the number, or of the elements of bytes */
	const uint8_t *bytes;	/* of OPERAND_TEXT too */
	size_t length;
};

/* One record being printed. */
struct print_context {
	const struct event_format *format;
	const uint8_t *data;
	uint32_t size;
	struct print_arena *arena; /* texts made on the way; NULL until there is one */
};

/* False when the kernel alone could tell the value. */
bool print_eval(struct print_context *context, const struct print_node *node,
		struct operand *result);

/* __print_flags() and so on; a function of printcalls.c for print_eval(). */
bool print_eval_call(struct print_context *context, const struct print_node *node,
		     struct operand *result);

/* The field itself, as the kernel's C code sees it. */
bool print_eval_field(struct print_context *context, const struct event_field *field,
		      struct operand *result);

bool operand_is_true(const struct operand *operand);

/* Keeps the text until the record is done and makes it the result; frees @text. */
bool print_keep(struct print_context *context, struct strbuf *text, struct operand *result);

/* "name", or "name+0x1/0x2 [module]" with @with_offset; the number when there is no symbol. */
void print_symbol(struct strbuf *out, const struct event_format *format, uint64_t address,
		  bool with_offset);

#endif
