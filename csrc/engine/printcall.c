/* SPDX-License-Identifier: MIT */
#include "printparse.h"

#include <stdio.h>
#include <string.h>

#include "field_type.h"

#define TYPE_LENGTH_MAX 128

/* Words that can only begin a type. */
bool parse_is_type_word(const struct token *token)
{
	static const char *const words[] = {
		"const", "volatile", "struct", "union", "enum", "signed", "unsigned", "char",
		"short", "int",	     "long",   "void",	"bool", "__user", "__force",  "typeof",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (token_is_word(token, words[i]))
			return true;
	return false;
}

/*
 * Reads "unsigned long", "struct page *" and the like. A name that the format does not
 * define is a type when it stands alone between parentheses or before a star and an
 * operand follows; the caller decides that.
 */
bool parse_type(struct parser *parser, struct print_type *type)
{
	struct field_type parsed;
	char spelling[TYPE_LENGTH_MAX] = "";
	size_t length = 0;
	bool is_void = false, has_name = false, is_tag = false;
	unsigned int stars = 0;

	while (parser->token.kind == TOKEN_NAME || parse_is(parser, '*')) {
		const struct token *token = &parser->token;

		if (parse_is(parser, '*')) {
			stars++;
		} else {
			bool is_word = parse_is_type_word(token);

			if (stars || (has_name && !is_word && !is_tag))
				break;
			is_void = is_void || token_is_word(token, "void");
			has_name = has_name || (!token_is_word(token, "const") &&
						!token_is_word(token, "volatile"));
			is_tag = token_is_word(token, "struct") || token_is_word(token, "union") ||
				 token_is_word(token, "enum");
			if (length + token->length + 2 > sizeof(spelling)) {
				parse_fail(parser, "it has a type with a very long name");
				return false;
			}
			memcpy(spelling + length, token->start, token->length);
			length += token->length;
			spelling[length++] = ' ';
		}
		parse_advance(parser);
	}
	spelling[length] = '\0';
	field_type_parse(spelling, parser->format->long_size, &parsed);
	*type = (struct print_type){
		.size = parsed.is_char ? 1 : parsed.size,
		/* A plain char has a sign on x86 before 6.2 only. */
		.is_signed = parsed.is_signed,
	};
	if (stars) {
		type->is_pointer = true;
		type->target_size = stars > 1 ? parser->format->long_size :
				    is_void   ? 1 :
						type->size;
		type->target_signed = stars == 1 && type->is_signed;
		type->size = parser->format->long_size;
		type->is_signed = false;
	}
	return has_name;
}

/* After "sizeof": of a type, or of a field. */
struct print_node *parse_sizeof(struct parser *parser)
{
	struct print_type type = { 0 };
	struct print_node *of;
	bool parens = parse_accept(parser, '(');

	if (parens && parser->token.kind == TOKEN_NAME && !token_is_word(&parser->token, "REC")) {
		parse_type(parser, &type);
	} else {
		of = parens ? parse_expression(parser) : parse_unary(parser);
		if (!of)
			return NULL;
		if (of->kind == PRINT_FIELD)
			return !parens || parse_expect(parser, ')') ?
				       node_number(parser, of->field->size,
						   parser->format->long_size, false) :
				       NULL;
		if (of->kind == PRINT_INDEX && of->a->kind == PRINT_FIELD)
			type.size = of->a->field->element_size;
		else if (of->kind == PRINT_STRING)
			return parse_fail(parser, "sizeof of a string");
	}
	if (!type.size)
		return parse_fail(parser,
				  "it takes the size of something that only the kernel knows");
	if (parens && !parse_expect(parser, ')'))
		return NULL;
	return node_number(parser, type.size, parser->format->long_size, false);
}

/* REC->ent is the head of the record: what it holds are the common fields. */
static bool parse_head(struct parser *parser, char *name, size_t size)
{
	if (!parse_accept(parser, '.') || parser->token.kind != TOKEN_NAME)
		return false;
	snprintf(name, size, "common_%.*s",
		 (int)(parser->token.length > 64 ? 64 : parser->token.length), parser->token.start);
	return true;
}

/* The name of one of the event's fields, as an argument of __get_str() and its kind. */
static struct print_node *parse_field_name(struct parser *parser)
{
	struct print_node *node = node_create(parser, PRINT_FIELD);
	char name[256];
	int index;

	if (!node)
		return NULL;
	if (parser->token.kind != TOKEN_NAME || parser->token.length >= sizeof(name))
		return parse_unexpected(parser);
	memcpy(name, parser->token.start, parser->token.length);
	name[parser->token.length] = '\0';
	index = format_field_index(parser->format, name);
	if (index < 0 && !strcmp(name, "ent")) {
		parse_advance(parser);
		if (!parse_head(parser, name, sizeof(name)))
			return parse_unexpected(parser);
		index = format_field_index(parser->format, name);
	}
	if (index < 0)
		return parse_fail(parser, "the event has no field \"%s\"", name);
	node->field = &parser->format->fields[index];
	parse_advance(parser);
	return node;
}

/* Behind "REC" or "(REC)": "->field". */
struct print_node *parse_record(struct parser *parser)
{
	if (!parse_expect(parser, OP_ARROW))
		return NULL;
	return parse_field_name(parser);
}

/* 0, NULL or ((void *)0) in the place of a name. */
static bool parse_null(struct parser *parser)
{
	const struct print_node *node = parse_expression(parser);

	while (node && node->kind == PRINT_CAST)
		node = node->a;
	if (node && node->kind == PRINT_NUMBER && !node->number)
		return true;
	parse_fail(parser, "a value has a name that is no text");
	return false;
}

/* { value, "name" }, ... up to the parenthesis that closes the call. */
static bool parse_symbols(struct parser *parser, struct print_node *call)
{
	struct print_symbol **tail = &call->symbols;
	bool is_ended = false;

	while (!parse_is(parser, ')')) {
		struct print_symbol *symbol;

		if (!parse_expect(parser, '{'))
			return false;
		if (parse_accept(parser, '}')) {
			parse_accept(parser, ',');
			continue;
		}
		symbol = print_arena_alloc(parser->arena, sizeof(*symbol));
		if (!symbol) {
			parse_fail(parser, "out of memory");
			return false;
		}
		symbol->value = parse_expression(parser);
		if (!symbol->value || !node_above(parser, call, symbol->value) ||
		    !parse_expect(parser, ','))
			return false;
		if (parser->token.kind == TOKEN_STRING) {
			symbol->name = parser->token.string;
			parse_advance(parser);
		} else if (!parse_null(parser)) {
			return false;
		}
		parse_accept(parser, ',');
		if (!parse_expect(parser, '}'))
			return false;
		/* Lists may end with an entry without a name; what follows it is not seen. */
		is_ended = is_ended || !symbol->name;
		if (is_ended) {
			if (!parse_accept(parser, ','))
				break;
			continue;
		}
		*tail = symbol;
		tail = &symbol->next;
		if (!parse_accept(parser, ','))
			break;
	}
	return true;
}

static struct print_node *parse_symbol_call(struct parser *parser, struct print_node *call)
{
	call->a = parse_expression(parser);
	if (!call->a || !node_above(parser, call, call->a) || !parse_expect(parser, ','))
		return NULL;
	if (call->function == PRINT_FLAGS) {
		if (parser->token.kind == TOKEN_STRING)
			call->text = parser->token.string;
		else if (!token_is_word(&parser->token, "NULL"))
			return parse_unexpected(parser);
		parse_advance(parser);
		parse_accept(parser, ',');
	}
	return parse_symbols(parser, call) && parse_expect(parser, ')') ? call : NULL;
}

/* What a call's arguments are: 'f' the name of a field, 'e' an expression. */
static const struct {
	const char *name;
	uint8_t function;
	bool is_64bit;
	const char *arguments; /* NULL: a value and a list of symbols */
} functions[] = {
	{ "__print_flags", PRINT_FLAGS, false, NULL },
	{ "__print_flags_u64", PRINT_FLAGS, true, NULL },
	{ "__print_symbolic", PRINT_SYMBOLIC, false, NULL },
	{ "__print_symbolic_u64", PRINT_SYMBOLIC, true, NULL },
	{ "__print_hex", PRINT_HEX, false, "ee" },
	{ "__print_hex_str", PRINT_HEX_STR, false, "ee" },
	{ "__print_hex_dump", PRINT_HEX_DUMP, false, "eeeeeee" },
	{ "__print_array", PRINT_ARRAY, false, "eee" },
	{ "__print_dynamic_array", PRINT_DYNAMIC_ARRAY, false, "fe" },
	{ "__print_ns_to_secs", PRINT_NS_TO_SECS, false, "e" },
	{ "__print_ns_without_secs", PRINT_NS_WITHOUT_SECS, false, "e" },
	{ "__get_str", PRINT_GET_STR, false, "f" },
	{ "__get_rel_str", PRINT_GET_STR, false, "f" },
	{ "__get_dynamic_array", PRINT_GET_ARRAY, false, "f" },
	{ "__get_rel_dynamic_array", PRINT_GET_ARRAY, false, "f" },
	{ "__get_sockaddr", PRINT_GET_ARRAY, false, "f" },
	{ "__get_rel_sockaddr", PRINT_GET_ARRAY, false, "f" },
	{ "__get_dynamic_array_len", PRINT_GET_ARRAY_LENGTH, false, "f" },
	{ "__get_rel_dynamic_array_len", PRINT_GET_ARRAY_LENGTH, false, "f" },
	{ "__get_bitmask", PRINT_GET_BITMASK, false, "f" },
	{ "__get_rel_bitmask", PRINT_GET_BITMASK, false, "f" },
	{ "__get_cpumask", PRINT_GET_BITMASK, false, "f" },
	{ "__get_rel_cpumask", PRINT_GET_BITMASK, false, "f" },
	{ "__get_stacktrace", PRINT_GET_STACK, false, "f" },
	{ "jiffies_to_msecs", PRINT_JIFFIES_TO_MSECS, false, "e" },
	{ "jiffies_to_usecs", PRINT_JIFFIES_TO_USECS, false, "e" },
};

/* "name", or "name[2]" for one string of a probe's array of them. */
static struct print_node *parse_field_argument(struct parser *parser, struct print_node *call)
{
	struct print_node *node = parse_field_name(parser);

	if (!node || !parse_accept(parser, '['))
		return node;
	if (call->function != PRINT_GET_STR || node->field->kind != FIELD_STRINGS ||
	    parser->token.kind != TOKEN_NUMBER)
		return parse_unexpected(parser);
	call->number = parser->token.number;
	parse_advance(parser);
	return parse_expect(parser, ']') ? node : NULL;
}

/* The name and its opening parenthesis have been read. */
struct print_node *parse_call(struct parser *parser, const struct token *name)
{
	struct print_node *call, **tail;
	const char *argument;
	size_t i = 0;

	while (i < sizeof(functions) / sizeof(functions[0]) &&
	       !token_is_word(name, functions[i].name))
		i++;
	if (i == sizeof(functions) / sizeof(functions[0]))
		return parse_fail(parser, "the function %.*s() is inside of the kernel",
				  (int)(name->length > 80 ? 80 : name->length), name->start);
	call = node_create(parser, PRINT_CALL);
	if (!call)
		return NULL;
	call->function = functions[i].function;
	call->is_64bit = functions[i].is_64bit;
	if (!functions[i].arguments)
		return parse_symbol_call(parser, call);
	tail = &call->a;
	for (argument = functions[i].arguments; *argument; argument++) {
		if (argument != functions[i].arguments && !parse_expect(parser, ','))
			return NULL;
		*tail = *argument == 'f' ? parse_field_argument(parser, call) :
					   parse_expression(parser);
		if (!*tail || !node_above(parser, call, *tail))
			return NULL;
		/* The same local can be an argument twice: its list link is not its own. */
		if ((*tail)->next || parser->locals) {
			struct print_node *copy = node_create(parser, PRINT_NUMBER);

			if (!copy)
				return NULL;
			*copy = **tail;
			copy->next = NULL;
			*tail = copy;
		}
		tail = &(*tail)->next;
	}
	return parse_expect(parser, ')') ? call : NULL;
}
