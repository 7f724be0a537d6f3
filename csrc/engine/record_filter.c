/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "field_type.h"
#include "record_filter_state.h"
#include "strbuf.h"

/* include/linux/trace_events.h */
#define FILTER_STRING_MAX 256

/* What the kernel takes with one write. */
#define TEXT_MAX 4095

/* Filters of people have a dozen; what is nested deeper is none of theirs. */
#define DEPTH_MAX 64

#define CPU_MAX 65535

struct parser {
	struct record_filter *filter;
	const char *text;
	const char *at;
	unsigned int depth;
	struct trace_error *error;
};

static void skip_space(struct parser *parser)
{
	while (isspace((unsigned char)*parser->at))
		parser->at++;
}

/* What is wrong at @where, with a caret below it as in the kernel's error_log. */
static int wrong(struct parser *parser, const char *where, const char *what)
{
	struct strbuf line = { 0 };

	for (const char *at = parser->text; *at; at++)
		strbuf_add_char(&line, iscntrl((unsigned char)*at) ? ' ' : *at);
	error_set(parser->error, EINVAL, "bad filter for %s: %s\n  %.800s\n  %*s",
		  parser->filter->format->label, what, line.text ? line.text : "",
		  (int)(where - parser->text) + 1, "^");
	strbuf_free(&line);
	return -1;
}

static int no_memory(struct parser *parser)
{
	return error_set(parser->error, ENOMEM, "out of memory");
}

/* Takes over what @node owns, also when it fails. The node's index, or -1. */
static int add_node(struct parser *parser, const struct filter_node *node)
{
	struct record_filter *filter = parser->filter;

	if (filter->count == filter->capacity) {
		unsigned int capacity = filter->capacity ? filter->capacity * 2 : 8;
		struct filter_node *nodes = reallocarray(filter->nodes, capacity, sizeof(*nodes));

		if (!nodes) {
			free(node->text);
			free(node->cpus);
			return no_memory(parser);
		}
		filter->nodes = nodes;
		filter->capacity = capacity;
	}
	filter->nodes[filter->count] = *node;
	return (int)filter->count++;
}

/* The operators in the order in which the kernel tries them: "<=" before "<". */
static bool parse_op(struct parser *parser, enum filter_op *op)
{
	static const char *const names[] = {
		[FILTER_GLOB] = "~", [FILTER_NE] = "!=", [FILTER_EQ] = "==", [FILTER_LE] = "<=",
		[FILTER_LT] = "<",   [FILTER_GE] = ">=", [FILTER_GT] = ">",  [FILTER_BAND] = "&",
	};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t length = strlen(names[i]);

		if (strncmp(parser->at, names[i], length) == 0) {
			parser->at += length;
			*op = (enum filter_op)i;
			return true;
		}
	}
	return false;
}

/* What a field is to the kernel's filters: filter_assign_type(). */
enum field_class {
	CLASS_NUMBER,
	CLASS_STRING,
	CLASS_POINTER, /* to a string */
	CLASS_MASK,
	CLASS_CPU,
	CLASS_COMM,
	CLASS_OTHER,
};

static enum field_class classify(const struct event_field *field)
{
	const char *type = field->type;

	if (strstr(type, "__data_loc") || strstr(type, "__rel_loc")) {
		if (strstr(type, "char"))
			return CLASS_STRING;
		return strstr(type, "cpumask_t") ? CLASS_MASK : CLASS_OTHER;
	}
	if (strchr(type, '[') && strstr(type, "char"))
		return CLASS_STRING;
	if (strcmp(type, "char *") == 0 || strcmp(type, "const char *") == 0)
		return CLASS_POINTER;
	if (strcmp(type, "cpumask_t") == 0 || strcmp(type, "cpumask_t *") == 0)
		return CLASS_MASK;
	if (field->size == 1 || field->size == 2 || field->size == 4 || field->size == 8)
		return CLASS_NUMBER;
	return CLASS_OTHER;
}

static void set_glob(struct filter_node *node)
{
	char *text = node->text;
	size_t length = node->text_length;
	enum filter_match match = MATCH_FULL;

	if (length && text[0] == '!') {
		node->is_negated = true;
		memmove(text, text + 1, length--);
	}
	/* such patterns stand for the index of a function elsewhere, and for themselves here */
	if (length && isdigit((unsigned char)text[0]))
		goto done;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '*') {
			if (i == 0) {
				match = MATCH_END;
				continue;
			}
			if (i == length - 1) {
				match = match == MATCH_END ? MATCH_MIDDLE : MATCH_FRONT;
				length = i;
				break;
			}
			match = MATCH_GLOB;
			break;
		}
		if (strchr("[?\\", text[i])) {
			match = MATCH_GLOB;
			break;
		}
	}
	if (match != MATCH_GLOB && length && text[0] == '*')
		memmove(text, text + 1, length--);
done:
	text[length] = '\0';
	node->text_length = length;
	node->match = match;
}

/* FIELD OP "TEXT" */
static int parse_string(struct parser *parser, struct filter_node *node, enum field_class class,
			const char *op_at)
{
	char quote = *parser->at;
	const char *start = ++parser->at;
	const char *end = strchr(start, quote);

	if (class == CLASS_POINTER)
		return wrong(parser, op_at,
			     "the string is behind a pointer, in memory that is not recorded");
	if (class != CLASS_STRING && class != CLASS_COMM)
		return wrong(parser, op_at, "Illegal operation for field type");
	if (node->op != FILTER_EQ && node->op != FILTER_NE && node->op != FILTER_GLOB)
		return wrong(parser, op_at, "Illegal operation for field type");
	if (!end)
		return wrong(parser, start, "Missing closing quote");
	if (end - start >= FILTER_STRING_MAX)
		return wrong(parser, start, "String too long");
	node->kind = NODE_STRING;
	node->text_length = (size_t)(end - start);
	node->text = strndup(start, node->text_length);
	if (!node->text)
		return no_memory(parser);
	if (node->op == FILTER_GLOB)
		set_glob(node);
	parser->at = end + 1;
	return add_node(parser, node);
}

static bool parse_cpus(const char **text, struct filter_node *node)
{
	const char *at = *text;

	while (*at != '}') {
		char *end;
		unsigned long first, last;

		at += strspn(at, " ,");
		if (*at == '}')
			break;
		if (!isdigit((unsigned char)*at))
			return false;
		first = last = strtoul(at, &end, 10);
		at = end;
		if (*at == '-' && isdigit((unsigned char)at[1])) {
			last = strtoul(at + 1, &end, 10);
			at = end;
		}
		if (last > CPU_MAX || first > last)
			return false;
		if (last / 64 >= node->cpu_words) {
			unsigned int words = (unsigned int)(last / 64) + 1;
			uint64_t *cpus = reallocarray(node->cpus, words, sizeof(*cpus));

			if (!cpus)
				return false;
			memset(cpus + node->cpu_words, 0,
			       (words - node->cpu_words) * sizeof(*cpus));
			node->cpus = cpus;
			node->cpu_words = words;
		}
		for (unsigned long cpu = first; cpu <= last; cpu++)
			node->cpus[cpu / 64] |= UINT64_C(1) << (cpu % 64);
	}
	*text = at + 1;
	return node->cpu_words > 0;
}

/* FIELD OP CPUS{0-3,7} */
static int parse_mask(struct parser *parser, struct filter_node *node, enum field_class class,
		      const char *op_at)
{
	const char *start = parser->at;

	if (class != CLASS_MASK && class != CLASS_NUMBER && class != CLASS_CPU)
		return wrong(parser, op_at, "Illegal operation for field type");
	if (node->op != FILTER_EQ && node->op != FILTER_NE && node->op != FILTER_BAND)
		return wrong(parser, op_at, "Illegal operation for field type");
	parser->at += strlen("CPUS{");
	if (!strchr(parser->at, '}'))
		return wrong(parser, start, "Missing closing brace for CPUS");
	if (!parse_cpus(&parser->at, node)) {
		free(node->cpus);
		return wrong(parser, start, "Invalid cpulist");
	}
	node->kind = class == CLASS_MASK ? NODE_MASK : NODE_IN_MASK;
	return add_node(parser, node);
}

/* FIELD.function OP NAME */
static int parse_function(struct parser *parser, struct filter_node *node, const char *op_at)
{
	const char *start = parser->at;

	if (node->op != FILTER_EQ && node->op != FILTER_NE)
		return wrong(parser, op_at, "Invalid operator");
	if (!node->field || node->field->size != parser->filter->format->long_size)
		return wrong(parser, op_at, "Illegal operation for field type");
	while (*parser->at && !isspace((unsigned char)*parser->at) && !strchr("()&|", *parser->at))
		parser->at++;
	if (parser->at == start)
		return wrong(parser, start, "Function not found");
	node->kind = NODE_FUNCTION;
	node->text = strndup(start, (size_t)(parser->at - start));
	if (!node->text)
		return no_memory(parser);
	return add_node(parser, node);
}

/* FIELD OP NUMBER */
static int parse_number(struct parser *parser, struct filter_node *node, enum field_class class,
			const char *op_at)
{
	const char *start = parser->at;
	bool is_negative = *start == '-';
	char digits[64], *end;
	size_t length = is_negative;

	if (class == CLASS_STRING || class == CLASS_POINTER || class == CLASS_COMM)
		return wrong(parser, op_at, "Illegal operation for field type");
	if (class != CLASS_NUMBER && class != CLASS_CPU)
		return wrong(parser, op_at, "Illegal operation for field type");
	if (node->op == FILTER_GLOB)
		return wrong(parser, op_at, "Illegal operation for field type");
	while (isalnum((unsigned char)start[length]))
		length++;
	if (length >= sizeof(digits) || length == is_negative || (is_negative && !node->is_signed))
		return wrong(parser, start, "Illegal integer value");
	memcpy(digits, start, length);
	digits[length] = '\0';
	errno = 0;
	node->number = node->is_signed ? strtoll(digits, &end, 0) :
					 (int64_t)strtoull(digits, &end, 0);
	if (*end || errno)
		return wrong(parser, start, "Illegal integer value");
	node->kind = NODE_NUMBER;
	parser->at += length;
	return add_node(parser, node);
}

static bool find_field(struct parser *parser, const char *name, struct filter_node *node,
		       enum field_class *class)
{
	const struct event_format *format = parser->filter->format;
	int index = format_field_index(format, name);

	if (index >= 0) {
		node->field = &format->fields[index];
		*class = classify(node->field);
		/* what stands in a wider place has the sign of that, which is none */
		node->is_signed = node->field->is_signed &&
				  node->field->element_size == node->field->size;
	} else if (strcmp(name, "CPU") == 0 || strcmp(name, "cpu") == 0 ||
		   strcmp(name, "common_cpu") == 0) {
		*class = CLASS_CPU;
		node->is_signed = true;
	} else if (strcmp(name, "COMM") == 0 || strcmp(name, "comm") == 0) {
		*class = CLASS_COMM;
	} else {
		return false;
	}
	return true;
}

static int parse_predicate(struct parser *parser)
{
	struct filter_node node = { 0 };
	const char *start = parser->at, *op_at;
	bool is_function = false;
	enum field_class class;
	char name[128];
	size_t length = 0;

	while (isalnum((unsigned char)start[length]) || start[length] == '_')
		length++;
	if (!length)
		return wrong(parser, start, "No field");
	if (length >= sizeof(name))
		return wrong(parser, start, "Field not found");
	memcpy(name, start, length);
	name[length] = '\0';
	parser->at += length;
	if (!find_field(parser, name, &node, &class)) {
		if (strcmp(name, "stacktrace") == 0 || strcmp(name, "STACKTRACE") == 0)
			return wrong(parser, start, "the stack of the moment is not recorded");
		return wrong(parser, start, "Field not found");
	}
	if (strncmp(parser->at, ".function", strlen(".function")) == 0) {
		is_function = true;
		parser->at += strlen(".function");
	} else if (strncmp(parser->at, ".ustring", strlen(".ustring")) == 0) {
		return wrong(parser, parser->at,
			     "the string is in a process's memory, which is not recorded");
	}
	skip_space(parser);
	op_at = parser->at;
	if (!parse_op(parser, &node.op))
		return wrong(parser, op_at, "Invalid operator");
	skip_space(parser);
	if (is_function)
		return parse_function(parser, &node, op_at);
	if (*parser->at == '"' || *parser->at == '\'')
		return parse_string(parser, &node, class, op_at);
	if (strncmp(parser->at, "CPUS{", strlen("CPUS{")) == 0)
		return parse_mask(parser, &node, class, op_at);
	if (isdigit((unsigned char)*parser->at) || *parser->at == '-')
		return parse_number(parser, &node, class, op_at);
	return wrong(parser, parser->at, "Invalid value (did you forget quotes)?");
}

static int parse_or(struct parser *parser);

/* A predicate, one in parentheses, or either with a '!'. */
static int parse_factor(struct parser *parser)
{
	const char *start;
	int inner;

	skip_space(parser);
	start = parser->at;
	if (*start != '!' && *start != '(')
		return parse_predicate(parser);
	if (++parser->depth > DEPTH_MAX)
		return wrong(parser, start, "Too many levels of parentheses and '!'");
	parser->at++;
	if (*start == '!') {
		inner = parse_factor(parser);
		if (inner >= 0)
			inner = add_node(parser,
					 &(struct filter_node){ .kind = NODE_NOT, .left = inner });
	} else {
		inner = parse_or(parser);
		if (inner >= 0) {
			skip_space(parser);
			if (*parser->at != ')')
				return wrong(parser, start, "Missing parenthesis");
			parser->at++;
		}
	}
	parser->depth--;
	return inner;
}

static int parse_list(struct parser *parser, const char *op, enum filter_node_kind kind,
		      int (*parse_part)(struct parser *parser))
{
	int left = parse_part(parser);

	while (left >= 0) {
		struct filter_node node = { .kind = kind, .left = left };

		skip_space(parser);
		if (strncmp(parser->at, op, 2) != 0)
			return left;
		parser->at += 2;
		node.right = parse_part(parser);
		if (node.right < 0)
			return -1;
		left = add_node(parser, &node);
	}
	return -1;
}

static int parse_and(struct parser *parser)
{
	return parse_list(parser, "&&", NODE_AND, parse_factor);
}

static int parse_or(struct parser *parser)
{
	return parse_list(parser, "||", NODE_OR, parse_and);
}

static bool is_zero(const char *text)
{
	text += strspn(text, " \t\n");
	return text[0] == '0' && !text[1 + strspn(text + 1, " \t\n")];
}

int record_filter_create(const struct event_format *format, const char *text,
			 struct record_filter **filter, struct trace_error *error)
{
	struct parser parser = { .text = text, .at = text, .error = error };

	*filter = NULL;
	if (is_zero(text))
		return 0;
	if (strlen(text) > TEXT_MAX)
		return error_set(error, E2BIG, "bad filter for %s: it has more than %d bytes",
				 format->label, TEXT_MAX);
	parser.filter = calloc(1, sizeof(*parser.filter));
	if (!parser.filter)
		return error_set(error, ENOMEM, "out of memory");
	parser.filter->format = format;
	parser.filter->root = parse_or(&parser);
	if (parser.filter->root >= 0) {
		skip_space(&parser);
		if (*parser.at)
			parser.filter->root =
				wrong(&parser, parser.at,
				      *parser.at == ')' ? "Too many ')'" : "Missing && or ||");
	}
	if (parser.filter->root < 0) {
		record_filter_free(parser.filter);
		return -1;
	}
	*filter = parser.filter;
	return 0;
}

void record_filter_free(struct record_filter *filter)
{
	if (!filter)
		return;
	for (unsigned int i = 0; i < filter->count; i++) {
		free(filter->nodes[i].text);
		free(filter->nodes[i].cpus);
	}
	free(filter->nodes);
	free(filter);
}
