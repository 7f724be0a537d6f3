/* SPDX-License-Identifier: MIT */
#include "printtree.h"

uint64_t print_narrow(uint64_t number, struct print_type type)
{
	switch (type.size) {
	case 1:
		return type.is_signed ? (uint64_t)(int64_t)(int8_t)number : (uint8_t)number;
	case 2:
		return type.is_signed ? (uint64_t)(int64_t)(int16_t)number : (uint16_t)number;
	case 4:
		return type.is_signed ? (uint64_t)(int64_t)(int32_t)number : (uint32_t)number;
	default:
		return number;
	}
}

/* What is narrower than an int becomes one. */
static struct print_type promote(struct print_type type)
{
	if (type.size < 4)
		return (struct print_type){ .size = 4, .is_signed = true };
	return (struct print_type){ .size = type.size, .is_signed = type.is_signed };
}

/* The type in which C computes with operands of these two. */
static struct print_type balance(struct print_type a, struct print_type b)
{
	a = promote(a);
	b = promote(b);
	if (a.size == b.size)
		a.is_signed = a.is_signed && b.is_signed;
	else if (a.size < b.size)
		a = b;
	return a;
}

static bool divide(uint64_t a, uint64_t b, struct print_type type, bool want_rest, uint64_t *result)
{
	if (!b)
		return false;
	if (type.is_signed) {
		int64_t x = (int64_t)a, y = (int64_t)b;

		/* The one quotient that does not fit. */
		if (y == -1)
			*result = want_rest ? 0 : 0 - a;
		else
			*result = (uint64_t)(want_rest ? x % y : x / y);
	} else {
		*result = want_rest ? a % b : a / b;
	}
	return true;
}

static uint64_t shift(int op, uint64_t a, uint64_t count, struct print_type type)
{
	/* Too large a count is undefined in C; the usual machines take it modulo. */
	count &= type.size == 8 ? 63 : 31;
	if (op == OP_SHIFT_LEFT)
		return a << count;
	if (!type.is_signed || !(a >> 63))
		return a >> count;
	return ~(~a >> count);
}

static bool less(uint64_t a, uint64_t b, struct print_type type)
{
	return type.is_signed ? (int64_t)a < (int64_t)b : a < b;
}

bool print_apply(int op, uint64_t a, struct print_type a_type, uint64_t b, struct print_type b_type,
		 uint64_t *result, struct print_type *result_type)
{
	static const struct print_type int_type = { .size = 4, .is_signed = true };
	struct print_type type = balance(a_type, b_type);
	uint64_t x = print_narrow(a, type), y = print_narrow(b, type);

	*result_type = int_type;
	switch (op) {
	case OP_LESS:
		*result = less(x, y, type);
		return true;
	case OP_GREATER:
		*result = less(y, x, type);
		return true;
	case OP_LESS_EQUAL:
		*result = !less(y, x, type);
		return true;
	case OP_GREATER_EQUAL:
		*result = !less(x, y, type);
		return true;
	case OP_EQUAL:
		*result = x == y;
		return true;
	case OP_NOT_EQUAL:
		*result = x != y;
		return true;
	case OP_LOGICAL_AND:
		*result = a && b;
		return true;
	case OP_LOGICAL_OR:
		*result = a || b;
		return true;
	case OP_SHIFT_LEFT:
	case OP_SHIFT_RIGHT:
		type = promote(a_type);
		*result = shift(op, print_narrow(a, type), b, type);
		break;
	case OP_MULTIPLY:
		*result = x * y;
		break;
	case OP_DIVIDE:
	case OP_MODULO:
		if (!divide(x, y, type, op == OP_MODULO, result))
			return false;
		break;
	case OP_ADD:
		*result = x + y;
		break;
	case OP_SUBTRACT:
		*result = x - y;
		break;
	case OP_AND:
		*result = x & y;
		break;
	case OP_XOR:
		*result = x ^ y;
		break;
	case OP_OR:
		*result = x | y;
		break;
	default:
		return false;
	}
	*result = print_narrow(*result, type);
	*result_type = type;
	return true;
}
