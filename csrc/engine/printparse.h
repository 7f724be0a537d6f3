/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PRINTPARSE_H
#define LUATRACE_PRINTPARSE_H

#include "printlex.h"
#include "printtree.h"

/* Between the files of the print format's parser only. */

/* Deeper than any real print format, and shallow enough for every stack. */
#define PRINT_DEPTH_MAX 400
/* Operations to evaluate one expression; locals make it grow faster than its text. */
#define PRINT_WEIGHT_MAX 100000

/* `T name = value;` inside of ({ ... }): its uses stand for the value. */
struct print_local {
	struct print_local *next;
	const char *name;
	size_t length;
	struct print_node *value;
};

struct parser {
	const struct event_format *format;
	struct print_arena *arena;
	const char *at;
	const char *end;
	struct token token;
	struct print_local *locals;
	unsigned int depth;
	struct trace_error *error;
	bool failed;
};

/* Notes the first reason why the text is no good; always NULL. */
__attribute__((format(printf, 2, 3))) struct print_node *parse_fail(struct parser *parser,
								    const char *format, ...);
struct print_node *parse_unexpected(struct parser *parser);

void parse_advance(struct parser *parser);
bool parse_is(const struct parser *parser, int op);
bool parse_accept(struct parser *parser, int op);
bool parse_expect(struct parser *parser, int op);
bool token_is_word(const struct token *token, const char *word);

/*
 * Makers of nodes. They return NULL when the parser has failed, also when an operand
 * is NULL, and compute what is known already.
 */
struct print_node *node_create(struct parser *parser, enum print_node_kind kind);
struct print_node *node_number(struct parser *parser, uint64_t number, uint8_t size,
			       bool is_signed);
struct print_node *node_unary(struct parser *parser, int op, struct print_node *a);
struct print_node *node_binary(struct parser *parser, int op, struct print_node *a,
			       struct print_node *b);
struct print_node *node_index(struct parser *parser, struct print_node *a,
			      struct print_node *index);
struct print_node *node_cast(struct parser *parser, struct print_type type, struct print_node *a);
/* @node stands above @child: what would take too long to evaluate is refused. */
bool node_above(struct parser *parser, struct print_node *node, const struct print_node *child);

struct print_node *parse_expression(struct parser *parser);
struct print_node *parse_unary(struct parser *parser);

/* Words that can only begin a type. */
bool parse_is_type_word(const struct token *token);
/* "unsigned long", "struct page *" and the like; false when there is no name in it. */
bool parse_type(struct parser *parser, struct print_type *type);

/* printcall.c: what stands behind REC, sizeof, and the name of a function. */
struct print_node *parse_record(struct parser *parser);
struct print_node *parse_sizeof(struct parser *parser);
struct print_node *parse_call(struct parser *parser, const struct token *name);

#endif
