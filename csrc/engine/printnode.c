/* SPDX-License-Identifier: MIT */
#include "printparse.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) struct print_node *parse_fail(struct parser *parser,
								    const char *format, ...)
{
	char reason[256];
	va_list args;

	if (parser->failed)
		return NULL;
	parser->failed = true;
	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	error_set(parser->error, ENOTSUP, "the print format of %s cannot be evaluated: %s",
		  parser->format->label, reason);
	return NULL;
}

void parse_advance(struct parser *parser)
{
	parser->at = print_lex(parser->at, parser->end, parser->format->long_size, parser->arena,
			       &parser->token);
}

struct print_node *parse_unexpected(struct parser *parser)
{
	const struct token *token = &parser->token;

	if (token->kind == TOKEN_END)
		return parse_fail(parser, "it ends too early");
	return parse_fail(parser, "\"%.*s\" is not expected there",
			  (int)(token->length > 40 ? 40 : token->length), token->start);
}

bool parse_is(const struct parser *parser, int op)
{
	return parser->token.kind == TOKEN_OPERATOR && parser->token.op == op;
}

bool parse_accept(struct parser *parser, int op)
{
	if (!parse_is(parser, op))
		return false;
	parse_advance(parser);
	return true;
}

bool parse_expect(struct parser *parser, int op)
{
	if (parse_accept(parser, op))
		return true;
	parse_unexpected(parser);
	return false;
}

bool token_is_word(const struct token *token, const char *word)
{
	return token->kind == TOKEN_NAME && strlen(word) == token->length &&
	       !memcmp(token->start, word, token->length);
}

struct print_node *node_create(struct parser *parser, enum print_node_kind kind)
{
	struct print_node *node = print_arena_alloc(parser->arena, sizeof(*node));

	if (!node)
		return parse_fail(parser, "out of memory");
	node->kind = kind;
	node->depth = 1;
	node->weight = 1;
	return node;
}

struct print_node *node_number(struct parser *parser, uint64_t number, uint8_t size, bool is_signed)
{
	struct print_node *node = node_create(parser, PRINT_NUMBER);

	if (node) {
		node->number = number;
		node->type.size = size;
		node->type.is_signed = is_signed;
	}
	return node;
}

bool node_above(struct parser *parser, struct print_node *node, const struct print_node *child)
{
	if (!child)
		return !parser->failed;
	if (child->depth >= node->depth)
		node->depth = child->depth + 1;
	node->weight += child->weight;
	if (node->depth > PRINT_DEPTH_MAX || node->weight > PRINT_WEIGHT_MAX) {
		parse_fail(parser, "it is nested too deeply");
		return false;
	}
	return true;
}

struct print_node *node_binary(struct parser *parser, int op, struct print_node *a,
			       struct print_node *b)
{
	struct print_node *node;
	struct print_type type;
	uint64_t number;

	if (!a || !b)
		return NULL;
	if (a->kind == PRINT_NUMBER && b->kind == PRINT_NUMBER &&
	    print_apply(op, a->number, a->type, b->number, b->type, &number, &type)) {
		node = node_create(parser, PRINT_NUMBER);
		if (node) {
			node->number = number;
			node->type = type;
		}
		return node;
	}
	node = node_create(parser, PRINT_BINARY);
	if (!node || !node_above(parser, node, a) || !node_above(parser, node, b))
		return NULL;
	node->op = op;
	node->a = a;
	node->b = b;
	return node;
}

struct print_node *node_unary(struct parser *parser, int op, struct print_node *a)
{
	struct print_node *node;

	if (!a)
		return NULL;
	if (a->kind == PRINT_NUMBER) {
		/* -x is 0 - x, !x is x == 0 and ~x is x ^ -1, in x's own type. */
		struct print_node *other =
			node_number(parser, op == OP_COMPLEMENT ? UINT64_MAX : 0, 4, true);

		if (op == OP_SUBTRACT)
			return node_binary(parser, OP_SUBTRACT, other, a);
		return node_binary(parser, op == OP_NOT ? OP_EQUAL : OP_XOR, a, other);
	}
	node = node_create(parser, PRINT_UNARY);
	if (!node || !node_above(parser, node, a))
		return NULL;
	node->op = op;
	node->a = a;
	return node;
}

struct print_node *node_index(struct parser *parser, struct print_node *a, struct print_node *index)
{
	struct print_node *node = node_create(parser, PRINT_INDEX);

	if (!node || !a || !index || !node_above(parser, node, a) ||
	    !node_above(parser, node, index))
		return NULL;
	if (a->kind == PRINT_NAME)
		return parse_fail(parser, "the table %s is inside of the kernel", a->text);
	node->a = a;
	node->b = index;
	return node;
}

struct print_node *node_cast(struct parser *parser, struct print_type type, struct print_node *a)
{
	struct print_node *node;

	if (!a)
		return NULL;
	if (a->kind == PRINT_NUMBER && !type.is_pointer && type.size) {
		node = node_create(parser, PRINT_NUMBER);
		if (node) {
			node->type = type;
			node->number = print_narrow(a->number, type);
		}
		return node;
	}
	node = node_create(parser, PRINT_CAST);
	if (!node || !node_above(parser, node, a))
		return NULL;
	node->type = type;
	node->a = a;
	return node;
}
