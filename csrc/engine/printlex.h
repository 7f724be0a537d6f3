/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PRINTLEX_H
#define LUATRACE_PRINTLEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Memory that is given back all at once. */
struct print_arena;

struct print_arena *print_arena_create(void);
void print_arena_free(struct print_arena *arena);
/* Zeroed; NULL when memory is short. */
void *print_arena_alloc(struct print_arena *arena, size_t size);

enum token_kind {
	TOKEN_END,
	TOKEN_BAD, /* unterminated literal, strange byte */
	TOKEN_NAME,
	TOKEN_NUMBER,
	TOKEN_STRING,
	TOKEN_OPERATOR,
};

struct token {
	enum token_kind kind;
	const char *start; /* in the text */
	size_t length;
	int op;		     /* TOKEN_OPERATOR: a character or an enum print_op */
	uint64_t number;     /* TOKEN_NUMBER, also of 'c' */
	uint8_t number_size; /* 4 or 8 */
	bool number_signed;
	const char *string; /* TOKEN_STRING: escapes resolved, in the arena */
	size_t string_length;
};

/* OP_ARROW stands beside the operators of enum print_op. */
#define OP_ARROW 512

/* Reads the token at @text, which ends at @end. Returns where the next one starts. */
const char *print_lex(const char *text, const char *end, unsigned int long_size,
		      struct print_arena *arena, struct token *token);

#endif
