/* SPDX-License-Identifier: MIT */
#include "printlex.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "printtree.h"

#define ARENA_BLOCK_SIZE 4096

struct arena_block {
	struct arena_block *next;
	size_t used;
	size_t size;
	max_align_t bytes[];
};

struct print_arena {
	struct arena_block *blocks;
};

struct print_arena *print_arena_create(void)
{
	return calloc(1, sizeof(struct print_arena));
}

void print_arena_free(struct print_arena *arena)
{
	struct arena_block *block, *next;

	if (!arena)
		return;
	for (block = arena->blocks; block; block = next) {
		next = block->next;
		free(block);
	}
	free(arena);
}

void *print_arena_alloc(struct print_arena *arena, size_t size)
{
	struct arena_block *block = arena->blocks;
	void *result;

	size = (size + sizeof(max_align_t) - 1) & ~(sizeof(max_align_t) - 1);
	if (!block || block->size - block->used < size) {
		size_t block_size = size > ARENA_BLOCK_SIZE ? size : ARENA_BLOCK_SIZE;

		block = malloc(sizeof(*block) + block_size);
		if (!block)
			return NULL;
		block->used = 0;
		block->size = block_size;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	result = (char *)block->bytes + block->used;
	block->used += size;
	return memset(result, 0, size);
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The character at *@at, which stands behind a backslash; moves behind it. */
static char lex_escape(const char **at, const char *end)
{
	static const char letters[] = "abfnrtve", meanings[] = "\a\b\f\n\r\t\v\033";
	unsigned int value = 0;
	const char *letter;

	if (**at == 'x') {
		(*at)++;
		while (*at < end && hex_digit(**at) >= 0)
			value = value << 4 | (unsigned int)hex_digit(*(*at)++);
		return (char)value;
	}
	if (**at >= '0' && **at <= '7') {
		for (int i = 0; i < 3 && *at < end && **at >= '0' && **at <= '7'; i++)
			value = value << 3 | (unsigned int)(*(*at)++ - '0');
		return (char)value;
	}
	letter = memchr(letters, **at, sizeof(letters) - 1);
	if (letter) {
		(*at)++;
		return meanings[letter - letters];
	}
	return *(*at)++;
}

/*
 * Reads a literal in double quotes and those that follow it directly, which belong to
 * it. Returns its end, NULL if it has none; @text (unless NULL) gets the characters.
 */
static const char *lex_string_pass(const char *at, const char *end, char *text, size_t *length)
{
	const char *closed = NULL;

	*length = 0;
	while (at < end && *at == '"') {
		at++;
		while (at < end && *at != '"') {
			char c = *at++;

			if (c == '\\') {
				if (at == end)
					return NULL;
				c = lex_escape(&at, end);
			}
			if (text)
				text[*length] = c;
			(*length)++;
		}
		if (at == end)
			return NULL;
		closed = ++at;
		while (at < end && isspace((unsigned char)*at))
			at++;
	}
	return closed;
}

static const char *lex_string(const char *at, const char *end, struct print_arena *arena,
			      struct token *token)
{
	const char *closed = lex_string_pass(at, end, NULL, &token->string_length);
	char *text = NULL;

	if (closed)
		text = print_arena_alloc(arena, token->string_length + 1);
	if (!text) {
		token->kind = TOKEN_BAD;
		return end;
	}
	token->kind = TOKEN_STRING;
	token->string = text;
	return lex_string_pass(at, end, text, &token->string_length);
}

static const char *lex_character(const char *at, const char *end, struct token *token)
{
	char c;

	token->kind = TOKEN_BAD;
	at++;
	if (at == end || *at == '\'')
		return end;
	c = *at++;
	if (c == '\\') {
		if (at == end)
			return end;
		c = lex_escape(&at, end);
	}
	if (at == end || *at != '\'')
		return end;
	token->kind = TOKEN_NUMBER;
	token->number = (uint64_t)(int64_t)(signed char)c;
	token->number_size = 4;
	token->number_signed = true;
	return at + 1;
}

/* The type of a C literal: the first of int, long and so on that holds it. */
static void lex_number_type(struct token *token, bool is_decimal, bool is_unsigned,
			    unsigned int size)
{
	if (size < 8 && token->number > UINT32_MAX)
		size = 8;
	if (size < 8 && token->number > INT32_MAX && !is_unsigned) {
		if (is_decimal)
			size = 8;
		else
			is_unsigned = true;
	}
	if (token->number > INT64_MAX)
		is_unsigned = true;
	token->number_size = (uint8_t)size;
	token->number_signed = !is_unsigned;
	if (size == 4 && token->number_signed)
		token->number = (uint64_t)(int64_t)(int32_t)token->number;
}

static const char *lex_number(const char *at, const char *end, unsigned int long_size,
			      struct token *token)
{
	bool is_unsigned = false, is_decimal = false;
	unsigned int longs = 0, base = 10;

	token->kind = TOKEN_BAD;
	if (*at == '0' && end - at > 2 && (at[1] == 'x' || at[1] == 'X') && hex_digit(at[2]) >= 0) {
		base = 16;
		at += 2;
	} else if (*at == '0') {
		base = 8;
	}
	is_decimal = base == 10;
	while (at < end && hex_digit(*at) >= 0) {
		unsigned int digit = (unsigned int)hex_digit(*at);

		if (digit >= base || token->number > (UINT64_MAX - digit) / base)
			return end;
		token->number = token->number * base + digit;
		at++;
	}
	while (at < end && strchr("uUlL", *at)) {
		if (*at == 'u' || *at == 'U')
			is_unsigned = true;
		else
			longs++;
		at++;
	}
	if (at < end && (isalnum((unsigned char)*at) || *at == '_' || *at == '.'))
		return end;
	token->kind = TOKEN_NUMBER;
	lex_number_type(token, is_decimal, is_unsigned, longs >= 2 ? 8 : longs ? long_size : 4);
	return at;
}

static const char *lex_operator(const char *at, const char *end, struct token *token)
{
	static const struct {
		char text[3];
		int op;
	} pairs[] = {
		{ "->", OP_ARROW },	 { "<<", OP_SHIFT_LEFT },    { ">>", OP_SHIFT_RIGHT },
		{ "<=", OP_LESS_EQUAL }, { ">=", OP_GREATER_EQUAL }, { "==", OP_EQUAL },
		{ "!=", OP_NOT_EQUAL },	 { "&&", OP_LOGICAL_AND },   { "||", OP_LOGICAL_OR },
	};

	token->kind = TOKEN_OPERATOR;
	if (end - at >= 2) {
		for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
			if (at[0] == pairs[i].text[0] && at[1] == pairs[i].text[1]) {
				token->op = pairs[i].op;
				return at + 2;
			}
		}
	}
	if (!strchr("!~*/%+-<>&^|?:,()[]{};=.", *at) || !*at) {
		token->kind = TOKEN_BAD;
		return end;
	}
	token->op = (unsigned char)*at;
	return at + 1;
}

const char *print_lex(const char *text, const char *end, unsigned int long_size,
		      struct print_arena *arena, struct token *token)
{
	const char *at = text;

	*token = (struct token){ 0 };
	while (at < end && isspace((unsigned char)*at))
		at++;
	token->start = at;
	if (at == end) {
		token->kind = TOKEN_END;
		return at;
	}
	if (isalpha((unsigned char)*at) || *at == '_') {
		token->kind = TOKEN_NAME;
		while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
			at++;
	} else if (isdigit((unsigned char)*at)) {
		at = lex_number(at, end, long_size, token);
	} else if (*at == '"') {
		at = lex_string(at, end, arena, token);
	} else if (*at == '\'') {
		at = lex_character(at, end, token);
	} else {
		at = lex_operator(at, end, token);
	}
	token->length = (size_t)(at - token->start);
	return at;
}
