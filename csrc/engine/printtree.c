/* SPDX-License-Identifier: MIT */
#include "printtree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "printparse.h"

static char *copy_text(struct parser *parser, const char *text, size_t length)
{
	char *copy = print_arena_alloc(parser->arena, length + 1);

	if (!copy)
		parse_fail(parser, "out of memory");
	else
		memcpy(copy, text, length);
	return copy;
}

static struct print_node *parse_name(struct parser *parser)
{
	struct token name = parser->token;
	struct print_node *node;
	struct print_local *local;

	parse_advance(parser);
	if (token_is_word(&name, "REC"))
		return parse_record(parser);
	if (token_is_word(&name, "sizeof"))
		return parse_sizeof(parser);
	if (token_is_word(&name, "__builtin_expect")) {
		/* A hint for the compiler: the value is the first argument. */
		if (!parse_expect(parser, '('))
			return NULL;
		node = parse_expression(parser);
		if (!node || !parse_expect(parser, ',') || !parse_expression(parser) ||
		    !parse_expect(parser, ')'))
			return NULL;
		return node;
	}
	if (token_is_word(&name, "NULL") || token_is_word(&name, "false"))
		return node_number(parser, 0, 4, true);
	if (token_is_word(&name, "true"))
		return node_number(parser, 1, 4, true);
	for (local = parser->locals; local; local = local->next)
		if (local->length == name.length && !memcmp(local->name, name.start, name.length))
			return local->value;
	if (parse_accept(parser, '('))
		return parse_call(parser, &name);
	node = node_create(parser, PRINT_NAME);
	if (!node)
		return NULL;
	node->text = copy_text(parser, name.start, name.length);
	node->length = name.length;
	return node->text ? node : NULL;
}

/* "T name = value;" if that is what stands there, else false with nothing read. */
static bool parse_local(struct parser *parser)
{
	struct parser before = *parser;
	struct print_local *local;
	struct print_type type;
	struct token name;

	if (parser->token.kind != TOKEN_NAME || token_is_word(&parser->token, "REC"))
		return false;
	parse_type(parser, &type);
	name = parser->token;
	if (name.kind == TOKEN_NAME) {
		parse_advance(parser);
		if (parse_accept(parser, '=')) {
			local = print_arena_alloc(parser->arena, sizeof(*local));
			if (!local)
				return parse_fail(parser, "out of memory");
			local->name = name.start;
			local->length = name.length;
			local->value = node_cast(parser, type, parse_expression(parser));
			local->next = parser->locals;
			if (!local->value || !parse_expect(parser, ';'))
				return false;
			parser->locals = local;
			return true;
		}
	}
	if (!parser->failed) {
		parser->at = before.at;
		parser->token = before.token;
	}
	return false;
}

/* ({ T name = value; ... expression; }): min() and max() become that. */
static struct print_node *parse_statements(struct parser *parser)
{
	struct print_local *outer = parser->locals;
	struct print_node *result;

	while (parse_local(parser))
		;
	if (parse_is_type_word(&parser->token) || parser->failed)
		return parse_fail(parser, "it runs statements of C");
	result = parse_expression(parser);
	parser->locals = outer;
	if (!result || !parse_expect(parser, ';') || !parse_expect(parser, '}') ||
	    !parse_expect(parser, ')'))
		return NULL;
	return result;
}

/* Whether the token can begin an operand, so that "(name)" before it is a cast. */
static bool begins_operand(const struct token *token)
{
	switch (token->kind) {
	case TOKEN_NAME:
	case TOKEN_NUMBER:
	case TOKEN_STRING:
		return true;
	case TOKEN_OPERATOR:
		return token->op == '(' || token->op == '{' || token->op == OP_NOT ||
		       token->op == OP_COMPLEMENT;
	default:
		return false;
	}
}

/* What a type in parentheses applies to; { .tv64 = value } makes a ktime_t. */
static struct print_node *parse_cast(struct parser *parser, struct print_type type)
{
	struct print_node *value;

	if (!parse_accept(parser, '{'))
		return node_cast(parser, type, parse_unary(parser));
	if (!parse_accept(parser, '.') || !token_is_word(&parser->token, "tv64"))
		return parse_fail(parser, "it makes a struct");
	parse_advance(parser);
	if (!parse_expect(parser, '='))
		return NULL;
	value = parse_expression(parser);
	return value && parse_expect(parser, '}') ? value : NULL;
}

/* The opening parenthesis has been read: a cast, statements or an expression. */
static struct print_node *parse_parentheses(struct parser *parser)
{
	struct parser before = *parser;
	struct print_type type;
	struct print_node *node;

	if (parse_accept(parser, '{'))
		return parse_statements(parser);
	if (parse_is_type_word(&parser->token)) {
		if (!parse_type(parser, &type) || !parse_expect(parser, ')'))
			return parse_unexpected(parser);
		return parse_cast(parser, type);
	}
	if (parser->token.kind == TOKEN_NAME && !token_is_word(&parser->token, "REC")) {
		parse_type(parser, &type);
		if (!parser->failed && parse_accept(parser, ')') && begins_operand(&parser->token))
			return parse_cast(parser, type);
		if (parser->failed)
			return NULL;
		parser->at = before.at;
		parser->token = before.token;
	}
	if (token_is_word(&parser->token, "REC")) {
		parse_advance(parser);
		if (parse_accept(parser, ')'))
			return parse_record(parser);
		parser->at = before.at;
		parser->token = before.token;
	}
	node = parse_expression(parser);
	return node && parse_expect(parser, ')') ? node : NULL;
}

static struct print_node *parse_primary(struct parser *parser)
{
	struct print_node *node;

	switch (parser->token.kind) {
	case TOKEN_NUMBER:
		node = node_number(parser, parser->token.number, parser->token.number_size,
				   parser->token.number_signed);
		parse_advance(parser);
		return node;
	case TOKEN_STRING:
		node = node_create(parser, PRINT_STRING);
		if (!node)
			return NULL;
		node->text = parser->token.string;
		node->length = parser->token.string_length;
		parse_advance(parser);
		return node;
	case TOKEN_NAME:
		return parse_name(parser);
	default:
		if (parse_accept(parser, '('))
			return parse_parentheses(parser);
		return parse_unexpected(parser);
	}
}

static struct print_node *parse_postfix(struct parser *parser)
{
	struct print_node *node = parse_primary(parser);

	for (;;) {
		struct print_node *index;

		if (node && parse_accept(parser, '[')) {
			index = parse_expression(parser);
			if (!index || !parse_expect(parser, ']'))
				return NULL;
			node = node_index(parser, node, index);
		} else if (node && parse_accept(parser, '.')) {
			/* ktime_t was a union with one member that matters. */
			if (!token_is_word(&parser->token, "tv64"))
				return parse_fail(parser, "it looks into a struct");
			parse_advance(parser);
		} else {
			return node;
		}
	}
}

static struct print_node *parse_address(struct parser *parser)
{
	struct print_node *of = parse_unary(parser), *node;

	if (!of)
		return NULL;
	/* &array[n] is array + n. */
	if (of->kind == PRINT_INDEX)
		return node_binary(parser, OP_ADD, of->a, of->b);
	if (of->kind != PRINT_FIELD)
		return parse_fail(parser, "it takes the address of something that is no field");
	node = node_create(parser, PRINT_FIELD_ADDRESS);
	if (node)
		node->field = of->field;
	return node;
}

struct print_node *parse_unary(struct parser *parser)
{
	struct print_node *node;
	int op = parser->token.op;

	if (parser->depth >= PRINT_DEPTH_MAX)
		return parse_fail(parser, "it is nested too deeply");
	parser->depth++;
	if (parse_accept(parser, '+'))
		node = parse_unary(parser);
	else if (parse_accept(parser, OP_SUBTRACT) || parse_accept(parser, OP_NOT) ||
		 parse_accept(parser, OP_COMPLEMENT))
		node = node_unary(parser, op, parse_unary(parser));
	else if (parse_accept(parser, '*'))
		node = node_index(parser, parse_unary(parser), node_number(parser, 0, 4, true));
	else if (parse_accept(parser, '&'))
		node = parse_address(parser);
	else
		node = parse_postfix(parser);
	parser->depth--;
	return parser->failed ? NULL : node;
}

static int binary_priority(const struct token *token)
{
	if (token->kind != TOKEN_OPERATOR)
		return 0;
	switch (token->op) {
	case OP_MULTIPLY:
	case OP_DIVIDE:
	case OP_MODULO:
		return 10;
	case OP_ADD:
	case OP_SUBTRACT:
		return 9;
	case OP_SHIFT_LEFT:
	case OP_SHIFT_RIGHT:
		return 8;
	case OP_LESS:
	case OP_GREATER:
	case OP_LESS_EQUAL:
	case OP_GREATER_EQUAL:
		return 7;
	case OP_EQUAL:
	case OP_NOT_EQUAL:
		return 6;
	case OP_AND:
		return 5;
	case OP_XOR:
		return 4;
	case OP_OR:
		return 3;
	case OP_LOGICAL_AND:
		return 2;
	case OP_LOGICAL_OR:
		return 1;
	default:
		return 0;
	}
}

static struct print_node *parse_binary(struct parser *parser, int least)
{
	struct print_node *node = parse_unary(parser);
	int priority;

	while (node && (priority = binary_priority(&parser->token)) >= least && priority) {
		int op = parser->token.op;

		parse_advance(parser);
		node = node_binary(parser, op, node, parse_binary(parser, priority + 1));
	}
	return node;
}

struct print_node *parse_expression(struct parser *parser)
{
	struct print_node *condition, *node;

	if (parser->depth >= PRINT_DEPTH_MAX)
		return parse_fail(parser, "it is nested too deeply");
	parser->depth++;
	condition = parse_binary(parser, 1);
	if (condition && parse_accept(parser, '?')) {
		node = node_create(parser, PRINT_TERNARY);
		if (!node)
			return NULL;
		node->a = condition;
		node->b = parse_expression(parser);
		if (!node->b || !parse_expect(parser, ':'))
			return NULL;
		node->c = parse_expression(parser);
		if (!node->c || !node_above(parser, node, node->a) ||
		    !node_above(parser, node, node->b) || !node_above(parser, node, node->c))
			return NULL;
		condition = node;
	}
	parser->depth--;
	return parser->failed ? NULL : condition;
}

static bool parse_arguments(struct parser *parser, struct print_tree *tree)
{
	struct print_node **tail = &tree->args;

	while (parse_accept(parser, ',')) {
		*tail = parse_expression(parser);
		if (!*tail)
			return false;
		tail = &(*tail)->next;
	}
	if (parser->token.kind != TOKEN_END)
		parse_unexpected(parser);
	return !parser->failed;
}

struct print_tree *print_tree_parse(const struct event_format *format, struct trace_error *error)
{
	struct parser parser = {
		.format = format,
		.at = format->print_fmt,
		.end = format->print_fmt + strlen(format->print_fmt),
		.error = error,
	};
	struct print_tree *tree = calloc(1, sizeof(*tree));

	if (!tree || !(tree->arena = parser.arena = print_arena_create())) {
		free(tree);
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	parse_advance(&parser);
	if (parser.token.kind == TOKEN_STRING) {
		tree->format = parser.token.string;
		tree->format_length = parser.token.string_length;
		parse_advance(&parser);
		if (parse_arguments(&parser, tree))
			return tree;
	} else {
		parse_fail(&parser, "there is no format string");
	}
	print_tree_free(tree);
	return NULL;
}

void print_tree_free(struct print_tree *tree)
{
	if (!tree)
		return;
	print_arena_free(tree->arena);
	free(tree);
}
