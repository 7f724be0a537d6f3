/* SPDX-License-Identifier: MIT */
#include "printeval.h"

#include <string.h>

#include "bytes.h"
#include "kprintf.h"
#include "value.h"

#define NSEC_PER_SEC UINT64_C(1000000000)

/* What both sides of a comparison with a list's values are cut to. */
static uint64_t list_number(const struct print_context *context, const struct print_node *node,
			    uint64_t number)
{
	struct print_type type = { .size = node->is_64bit ? 8 : context->format->long_size };

	return print_narrow(number, type);
}

static bool symbol_value(struct print_context *context, const struct print_node *node,
			 const struct print_symbol *symbol, uint64_t *value)
{
	struct operand operand;

	if (!print_eval(context, symbol->value, &operand) || operand.kind != OPERAND_NUMBER)
		return false;
	*value = list_number(context, node, operand.number);
	return true;
}

static bool call_flags(struct print_context *context, const struct print_node *node, uint64_t flags,
		       struct operand *result)
{
	struct strbuf text = { 0 };
	bool is_first = true;

	for (const struct print_symbol *symbol = node->symbols; symbol && flags;
	     symbol = symbol->next) {
		uint64_t mask;

		if (!symbol_value(context, node, symbol, &mask) || (flags & mask) != mask)
			continue;
		flags &= ~mask;
		if (!is_first && node->text)
			strbuf_add_string(&text, node->text);
		is_first = false;
		strbuf_add_string(&text, symbol->name);
	}
	if (flags) {
		if (!is_first && node->text)
			strbuf_add_string(&text, node->text);
		strbuf_addf(&text, "0x%llx", (unsigned long long)flags);
	}
	return print_keep(context, &text, result);
}

static bool call_symbolic(struct print_context *context, const struct print_node *node,
			  uint64_t number, struct operand *result)
{
	struct strbuf text = { 0 };

	for (const struct print_symbol *symbol = node->symbols; symbol; symbol = symbol->next) {
		uint64_t value;

		if (symbol_value(context, node, symbol, &value) && value == number) {
			strbuf_add_string(&text, symbol->name);
			break;
		}
	}
	/* The kernel looks at what was written: an empty name is no name. */
	if (!text.length)
		strbuf_addf(&text, "0x%llx", (unsigned long long)number);
	return print_keep(context, &text, result);
}

/* __print_hex(bytes, length): as much as there is. */
static bool call_hex(struct print_context *context, const struct print_node *node,
		     struct operand *result)
{
	struct strbuf text = { 0 };
	struct operand bytes, length;
	size_t count;

	if (!print_eval(context, node->a, &bytes) || bytes.kind == OPERAND_NUMBER ||
	    !print_eval(context, node->a->next, &length) || length.kind != OPERAND_NUMBER)
		return false;
	count = length.number < bytes.length ? (size_t)length.number : bytes.length;
	kprint_hex(&text, bytes.bytes, count, node->function == PRINT_HEX ? ' ' : 0);
	return print_keep(context, &text, result);
}

static bool add_elements(struct print_context *context, const struct operand *bytes, uint64_t count,
			 uint64_t element, struct operand *result)
{
	struct strbuf text = { 0 };

	if (element != 1 && element != 2 && element != 4 && element != 8)
		return false;
	if (count > bytes->length / element)
		count = bytes->length / element;
	strbuf_add_char(&text, '{');
	for (uint64_t i = 0; i < count; i++)
		strbuf_addf(&text, "%s0x%llx", i ? "," : "",
			    (unsigned long long)load_int(bytes->bytes + i * element,
							 (unsigned int)element, false,
							 context->format->swaps));
	strbuf_add_char(&text, '}');
	return print_keep(context, &text, result);
}

static bool call_array(struct print_context *context, const struct print_node *node,
		       struct operand *result)
{
	struct operand bytes, count, element;

	if (!print_eval(context, node->a, &bytes) || bytes.kind == OPERAND_NUMBER ||
	    !print_eval(context, node->a->next, &count) || count.kind != OPERAND_NUMBER)
		return false;
	if (node->function == PRINT_DYNAMIC_ARRAY)
		return add_elements(context, &bytes, UINT64_MAX, count.number, result);
	if (!print_eval(context, node->a->next->next, &element) || element.kind != OPERAND_NUMBER)
		return false;
	/* The kernel takes the count as an int. */
	return add_elements(context, &bytes, (int32_t)count.number < 0 ? 0 : (uint32_t)count.number,
			    element.number, result);
}

/* One line of a hex dump: groups of hex digits, then the characters. */
static void dump_row(struct strbuf *text, const struct print_context *context, const uint8_t *bytes,
		     size_t length, unsigned int row, unsigned int group, bool ascii)
{
	size_t start = text->length;

	for (size_t i = 0; i < length; i += group) {
		if (i)
			strbuf_add_char(text, ' ');
		strbuf_addf(text, "%0*llx", (int)group * 2,
			    (unsigned long long)load_int(bytes + i, group, false,
							 context->format->swaps));
	}
	if (!ascii)
		return;
	while (!text->failed && text->length - start < row * 2 + row / group + 1)
		strbuf_add_char(text, ' ');
	for (size_t i = 0; i < length; i++)
		strbuf_add_char(text, bytes[i] >= ' ' && bytes[i] < 0x7f ? (char)bytes[i] : '.');
}

/* __print_hex_dump(prefix, prefix type, row size, group size, bytes, length, ascii) */
static bool call_hex_dump(struct print_context *context, const struct print_node *node,
			  struct operand *result)
{
	enum { PREFIX, PREFIX_TYPE, ROW, GROUP, BYTES, LENGTH, ASCII, COUNT };
	struct operand args[COUNT];
	const struct print_node *arg = node->a;
	struct strbuf text = { 0 };
	unsigned int row, group;
	size_t length;

	for (int i = 0; i < COUNT; i++, arg = arg->next) {
		/* How lines begin is an enum that BTF may not have: none, address, offset. */
		if (i == PREFIX_TYPE && arg->kind == PRINT_NAME) {
			args[i] = (struct operand){ .number = strstr(arg->text, "OFFSET")  ? 2 :
							      strstr(arg->text, "ADDRESS") ? 1 :
											     0 };
			continue;
		}
		if (!print_eval(context, arg, &args[i]) ||
		    (args[i].kind == OPERAND_NUMBER) == (i == PREFIX || i == BYTES))
			return false;
	}
	row = args[ROW].number == 32 ? 32 : 16;
	length = args[LENGTH].number < args[BYTES].length ? (size_t)args[LENGTH].number :
							    args[BYTES].length;
	group = (unsigned int)args[GROUP].number;
	if ((group != 2 && group != 4 && group != 8) || length % group)
		group = 1;
	strbuf_add_char(&text, '\n');
	for (size_t i = 0; i < length; i += row) {
		strbuf_add(&text, (const char *)args[PREFIX].bytes, args[PREFIX].length);
		if (args[PREFIX_TYPE].number)
			strbuf_addf(&text, "%.8zx: ", i);
		dump_row(&text, context, args[BYTES].bytes + i, length - i < row ? length - i : row,
			 row, group, args[ASCII].number);
		strbuf_add_char(&text, '\n');
	}
	return print_keep(context, &text, result);
}

/* __get_str(field), or __get_str(field[index]) */
static bool call_string(struct print_context *context, const struct event_field *field,
			uint64_t index, struct operand *result)
{
	struct value value, string;

	if (field->kind != FIELD_STRINGS)
		return print_eval_field(context, field, result);
	if (value_read(context->format, field, context->data, context->size, &value) ||
	    index >= value_count(field, &value) ||
	    value_string(context->format, &value, context->data, context->size, (uint32_t)index,
			 &string))
		return false;
	*result = (struct operand){
		.kind = OPERAND_TEXT,
		.bytes = string.bytes,
		.length = string.length,
		.type = { .size = 1 },
	};
	return true;
}

static bool call_bitmask(struct print_context *context, const struct event_field *field,
			 struct operand *result)
{
	struct strbuf text = { 0 };
	struct value value;
	struct value_bits bits = { context->format, &value };

	if (field->kind == FIELD_INT ||
	    value_read(context->format, field, context->data, context->size, &value))
		return false;
	kprint_bitmap(&text, value_bits_get, &bits, value.length * 8);
	return print_keep(context, &text, result);
}

/* The addresses of a stack, one symbol a line, as the kernel prints them in this place. */
static bool call_stack(struct print_context *context, const struct event_field *field,
		       struct operand *result)
{
	struct strbuf text = { 0 };
	struct value value;

	if (field->kind != FIELD_ARRAY ||
	    value_read(context->format, field, context->data, context->size, &value))
		return false;
	strbuf_add_string(&text, "STACK:\n");
	for (uint32_t i = 0; i < value_count(field, &value); i++) {
		uint64_t address = (uint64_t)value_element(context->format, field, &value, i);

		if (!address)
			break;
		strbuf_add_string(&text, "=> ");
		print_symbol(&text, context->format, address, true);
		strbuf_add_char(&text, '\n');
	}
	return print_keep(context, &text, result);
}

/* How long the kernel says a dynamic array is, in bytes. */
static bool array_length(const struct print_context *context, const struct event_field *field,
			 uint64_t *length)
{
	if (field->end > context->size)
		return false;
	if (field->place == FIELD_DATA_LOC || field->place == FIELD_REL_LOC)
		*length = load_u32(context->data + field->offset, context->format->swaps) >> 16;
	else
		*length = field->size;
	return true;
}

static bool call_number(struct print_context *context, const struct print_node *node,
			uint64_t number, struct operand *result)
{
	struct print_type type = { .size = 8 };
	unsigned int hz = catalog_hz(context->format->catalog);

	switch (node->function) {
	case PRINT_NS_TO_SECS:
		number /= NSEC_PER_SEC;
		break;
	case PRINT_NS_WITHOUT_SECS:
		type.size = 4;
		number %= NSEC_PER_SEC;
		break;
	case PRINT_JIFFIES_TO_MSECS:
	case PRINT_JIFFIES_TO_USECS:
		if (!hz)
			return false;
		type.size = 4;
		number = number * (node->function == PRINT_JIFFIES_TO_MSECS ? 1000 : 1000000) / hz;
		break;
	default:
		return false;
	}
	*result = (struct operand){ .number = print_narrow(number, type), .type = type };
	return true;
}

bool print_eval_call(struct print_context *context, const struct print_node *node,
		     struct operand *result)
{
	const struct event_field *field = node->a->field;
	struct operand a;
	uint64_t length;

	switch (node->function) {
	case PRINT_GET_STR:
		return call_string(context, field, node->number, result);
	case PRINT_GET_ARRAY:
		if (!print_eval_field(context, field, result))
			return false;
		/* Not only up to the first NUL, if it is text. */
		if (result->kind == OPERAND_TEXT && array_length(context, field, &length)) {
			result->kind = OPERAND_BYTES;
			result->length = (size_t)length;
		}
		return true;
	case PRINT_GET_ARRAY_LENGTH:
		if (!array_length(context, field, &length))
			return false;
		*result = (struct operand){ .number = length,
					    .type = { .size = 4, .is_signed = true } };
		return true;
	case PRINT_GET_BITMASK:
		return call_bitmask(context, field, result);
	case PRINT_GET_STACK:
		return call_stack(context, field, result);
	case PRINT_HEX:
	case PRINT_HEX_STR:
		return call_hex(context, node, result);
	case PRINT_HEX_DUMP:
		return call_hex_dump(context, node, result);
	case PRINT_ARRAY:
	case PRINT_DYNAMIC_ARRAY:
		return call_array(context, node, result);
	default:
		break;
	}
	if (!print_eval(context, node->a, &a) || a.kind != OPERAND_NUMBER)
		return false;
	if (node->function == PRINT_FLAGS)
		return call_flags(context, node, list_number(context, node, a.number), result);
	if (node->function == PRINT_SYMBOLIC)
		return call_symbolic(context, node, list_number(context, node, a.number), result);
	return call_number(context, node, a.number, result);
}
