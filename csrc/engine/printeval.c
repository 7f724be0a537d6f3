/* SPDX-License-Identifier: MIT */
#include "printeval.h"

#include <string.h>

#include "bytes.h"
#include "enums.h"
#include "ksym.h"
#include "printlex.h"
#include "value.h"

bool print_keep(struct print_context *context, struct strbuf *text, struct operand *result)
{
	char *copy = NULL;

	if (!context->arena)
		context->arena = print_arena_create();
	if (context->arena && !text->failed)
		copy = print_arena_alloc(context->arena, text->length + 1);
	if (copy && text->length)
		memcpy(copy, text->text, text->length);
	*result = (struct operand){
		.kind = OPERAND_TEXT,
		.bytes = (const uint8_t *)copy,
		.length = text->length,
		.type = { .size = 1 },
	};
	strbuf_free(text);
	return copy;
}

static void operand_set(struct operand *result, uint64_t number, struct print_type type)
{
	*result = (struct operand){ .kind = OPERAND_NUMBER, .number = number, .type = type };
}

bool operand_is_true(const struct operand *operand)
{
	/* A pointer into the record is never NULL. */
	return operand->kind != OPERAND_NUMBER || operand->number;
}

bool print_eval_field(struct print_context *context, const struct event_field *field,
		      struct operand *result)
{
	const struct event_format *format = context->format;
	struct value value;

	if (field->kind == FIELD_INT) {
		struct print_type type = { .size = (uint8_t)field->size,
					   .is_signed = field->is_signed };

		if (field->end > context->size)
			return false;
		/* The whole of it: what we narrow by type is as wide as declared to C. */
		if (field->element_size != field->size)
			type.is_signed = false;
		operand_set(result,
			    (uint64_t)load_int(context->data + field->offset, field->size,
					       type.is_signed, format->swaps),
			    type);
		return true;
	}
	if (value_read(format, field, context->data, context->size, &value))
		return false;
	*result = (struct operand){
		.kind = field->kind == FIELD_STRING ? OPERAND_TEXT : OPERAND_BYTES,
		.bytes = value.bytes,
		.length = value.length,
		.type = { .size = field->element_size, .is_signed = field->is_signed },
	};
	return true;
}

static bool eval_field_address(struct print_context *context, const struct event_field *field,
			       struct operand *result)
{
	if (field->place != FIELD_FIXED)
		return print_eval_field(context, field, result);
	if (field->end > context->size)
		return false;
	*result = (struct operand){
		.kind = OPERAND_BYTES,
		.bytes = context->data + field->offset,
		.length = field->size,
		.type = { .size = field->element_size, .is_signed = field->is_signed },
	};
	return true;
}

/* The node remembers what was found: the kernel's enums do not change. */
static bool eval_name(struct print_context *context, const struct print_node *node,
		      struct operand *result)
{
	struct print_node *cache = (struct print_node *)node;
	struct catalog *catalog = context->format->catalog;
	struct print_type type = { .size = context->format->long_size };
	int64_t number;

	if (!strcmp(node->text, "jiffies")) {
		uint64_t jiffies;

		/* The kernel means the moment of printing, and so do we. */
		if (!catalog_jiffies(catalog, &jiffies))
			return false;
		operand_set(result, print_narrow(jiffies, type), type);
		return true;
	}
	if (!cache->is_lookup_done) {
		cache->is_lookup_done = true;
		cache->is_known = !enum_lookup(catalog_enums(catalog), node->text, &number);
		if (cache->is_known) {
			cache->number = (uint64_t)number;
			cache->type.is_signed = number >= INT32_MIN && number <= INT32_MAX;
			cache->type.size = number >= INT32_MIN && number <= UINT32_MAX ? 4 : 8;
		}
	}
	if (!node->is_known)
		return false;
	operand_set(result, node->number, node->type);
	return true;
}

static bool eval_unary(struct print_context *context, const struct print_node *node,
		       struct operand *result)
{
	static const struct print_type int_type = { .size = 4, .is_signed = true };
	struct operand a;
	uint64_t number;
	struct print_type type;

	if (!print_eval(context, node->a, &a))
		return false;
	if (node->op == OP_NOT) {
		operand_set(result, !operand_is_true(&a), int_type);
		return true;
	}
	if (a.kind != OPERAND_NUMBER)
		return false;
	if (node->op == OP_SUBTRACT ?
		    !print_apply(OP_SUBTRACT, 0, int_type, a.number, a.type, &number, &type) :
		    !print_apply(OP_XOR, a.number, a.type, UINT64_MAX, int_type, &number, &type))
		return false;
	operand_set(result, number, type);
	return true;
}

/* pointer + number; false when that leaves the data that the pointer belongs to. */
static bool eval_pointer_offset(const struct operand *pointer, uint64_t elements,
				struct operand *result)
{
	size_t size = pointer->type.size ? pointer->type.size : 1;

	if (elements > pointer->length / size)
		return false;
	*result = *pointer;
	result->bytes += elements * size;
	result->length -= elements * size;
	return true;
}

static bool eval_binary(struct print_context *context, const struct print_node *node,
			struct operand *result)
{
	static const struct print_type int_type = { .size = 4, .is_signed = true };
	struct operand a, b;
	uint64_t number;
	struct print_type type;

	if (!print_eval(context, node->a, &a))
		return false;
	if (node->op == OP_LOGICAL_AND || node->op == OP_LOGICAL_OR) {
		bool is_true = operand_is_true(&a);

		if (is_true == (node->op == OP_LOGICAL_AND)) {
			if (!print_eval(context, node->b, &b))
				return false;
			is_true = operand_is_true(&b);
		}
		operand_set(result, is_true, int_type);
		return true;
	}
	if (!print_eval(context, node->b, &b))
		return false;
	if (a.kind != OPERAND_NUMBER || b.kind != OPERAND_NUMBER) {
		if (node->op == OP_ADD && b.kind == OPERAND_NUMBER)
			return eval_pointer_offset(&a, b.number, result);
		if ((node->op == OP_EQUAL || node->op == OP_NOT_EQUAL) && a.kind != b.kind &&
		    !(a.kind == OPERAND_NUMBER ? a.number : b.number)) {
			/* A pointer into the record, compared with NULL. */
			operand_set(result, node->op == OP_NOT_EQUAL, int_type);
			return true;
		}
		return false;
	}
	if (!print_apply(node->op, a.number, a.type, b.number, b.type, &number, &type))
		return false;
	operand_set(result, number, type);
	return true;
}

static bool eval_cast(struct print_context *context, const struct print_node *node,
		      struct operand *result)
{
	if (!print_eval(context, node->a, result))
		return false;
	if (node->type.is_pointer) {
		if (result->kind != OPERAND_NUMBER) {
			result->type.size = node->type.target_size;
			result->type.is_signed = node->type.target_signed;
			return true;
		}
	} else if (result->kind != OPERAND_NUMBER) {
		return false;
	}
	if (node->type.size) {
		result->number = print_narrow(result->number, node->type);
		result->type = node->type;
	}
	return true;
}

static bool eval_index(struct print_context *context, const struct print_node *node,
		       struct operand *result)
{
	struct operand base, index;
	struct print_type type;

	if (!print_eval(context, node->a, &base) || !print_eval(context, node->b, &index) ||
	    base.kind == OPERAND_NUMBER || index.kind != OPERAND_NUMBER)
		return false;
	type = base.type;
	if (!type.size)
		return false;
	/* Text ends with a NUL that is not counted. */
	if (base.kind == OPERAND_TEXT && index.number == base.length) {
		operand_set(result, 0, type);
		return true;
	}
	if (base.length < type.size || index.number > (base.length - type.size) / type.size)
		return false;
	operand_set(result,
		    (uint64_t)load_int(base.bytes + index.number * type.size, type.size,
				       type.is_signed, context->format->swaps),
		    type);
	return true;
}

bool print_eval(struct print_context *context, const struct print_node *node,
		struct operand *result)
{
	struct operand condition;

	switch (node->kind) {
	case PRINT_NUMBER:
		operand_set(result, node->number, node->type);
		return true;
	case PRINT_STRING:
		*result = (struct operand){
			.kind = OPERAND_TEXT,
			.bytes = (const uint8_t *)node->text,
			.length = strlen(node->text),
			.type = { .size = 1 },
		};
		return true;
	case PRINT_FIELD:
		return print_eval_field(context, node->field, result);
	case PRINT_FIELD_ADDRESS:
		return eval_field_address(context, node->field, result);
	case PRINT_NAME:
		return eval_name(context, node, result);
	case PRINT_UNARY:
		return eval_unary(context, node, result);
	case PRINT_BINARY:
		return eval_binary(context, node, result);
	case PRINT_TERNARY:
		return print_eval(context, node->a, &condition) &&
		       print_eval(context, operand_is_true(&condition) ? node->b : node->c, result);
	case PRINT_CAST:
		return eval_cast(context, node, result);
	case PRINT_INDEX:
		return eval_index(context, node, result);
	case PRINT_CALL:
		return print_eval_call(context, node, result);
	default:
		return false;
	}
}

void print_symbol(struct strbuf *out, const struct event_format *format, uint64_t address,
		  bool with_offset)
{
	struct ksym symbol;

	if (ksym_lookup(catalog_ksyms(format->catalog), address, &symbol)) {
		strbuf_addf(out, "0x%llx", (unsigned long long)address);
		return;
	}
	strbuf_add_string(out, symbol.name);
	if (with_offset)
		strbuf_addf(out, "+0x%llx/0x%llx", (unsigned long long)symbol.offset,
			    (unsigned long long)symbol.size);
	if (with_offset && symbol.module)
		strbuf_addf(out, " [%s]", symbol.module);
}
