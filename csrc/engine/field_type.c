/* SPDX-License-Identifier: MIT */
#include "field_type.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* Size 0 stands for a long of the traced machine. */
struct named_type {
	const char *name;
	uint8_t size;
	bool is_signed;
};

/* Sorted by name. Only names that mean the same on every kernel. */
static const struct named_type named_types[] = {
	{ "__be16", 2, false },
	{ "__be32", 4, false },
	{ "__be64", 8, false },
	{ "__kernel_clockid_t", 4, true },
	{ "__kernel_old_time_t", 0, true },
	{ "__kernel_pid_t", 4, true },
	{ "__kernel_time64_t", 8, true },
	{ "__kernel_timer_t", 4, true },
	{ "__le16", 2, false },
	{ "__le32", 4, false },
	{ "__le64", 8, false },
	{ "__s16", 2, true },
	{ "__s32", 4, true },
	{ "__s64", 8, true },
	{ "__s8", 1, true },
	{ "__u16", 2, false },
	{ "__u32", 4, false },
	{ "__u64", 8, false },
	{ "__u8", 1, false },
	{ "aio_context_t", 0, false },
	{ "bool", 1, false },
	{ "clockid_t", 4, true },
	{ "gid_t", 4, false },
	{ "int16_t", 2, true },
	{ "int32_t", 4, true },
	{ "int64_t", 8, true },
	{ "int8_t", 1, true },
	{ "key_serial_t", 4, true },
	{ "key_t", 4, true },
	{ "loff_t", 8, true },
	{ "mqd_t", 4, true },
	{ "off_t", 0, true },
	{ "pid_t", 4, true },
	{ "qid_t", 4, false },
	{ "rwf_t", 4, true },
	{ "s16", 2, true },
	{ "s32", 4, true },
	{ "s64", 8, true },
	{ "s8", 1, true },
	{ "size_t", 0, false },
	{ "ssize_t", 0, true },
	{ "timer_t", 4, true },
	{ "u16", 2, false },
	{ "u32", 4, false },
	{ "u64", 8, false },
	{ "u8", 1, false },
	{ "uid_t", 4, false },
	{ "uint", 4, false },
	{ "uint16_t", 2, false },
	{ "uint32_t", 4, false },
	{ "uint64_t", 8, false },
	{ "uint8_t", 1, false },
	{ "uintptr_t", 0, false },
	{ "ulong", 0, false },
	{ "umode_t", 2, false },
	{ "ushort", 2, false },
};

static const struct named_type *named_type_find(const char *word, size_t length)
{
	size_t low = 0, high = sizeof(named_types) / sizeof(named_types[0]);

	while (low < high) {
		size_t middle = (low + high) / 2;
		const char *name = named_types[middle].name;
		int order = strncmp(word, name, length);

		if (!order && name[length])
			order = -1;
		if (!order)
			return &named_types[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

static bool word_is(const char *word, size_t length, const char *name)
{
	return strlen(name) == length && !memcmp(word, name, length);
}

/* The words of C's own integer types, in whatever order they come. */
struct basic_words {
	unsigned int longs;
	bool has_short, has_char, has_signed, has_unsigned, has_any;
};

static bool basic_word(struct basic_words *words, const char *word, size_t length)
{
	if (word_is(word, length, "long"))
		words->longs++;
	else if (word_is(word, length, "short"))
		words->has_short = true;
	else if (word_is(word, length, "char"))
		words->has_char = true;
	else if (word_is(word, length, "signed") || word_is(word, length, "__signed__"))
		words->has_signed = true;
	else if (word_is(word, length, "unsigned"))
		words->has_unsigned = true;
	else if (!word_is(word, length, "int"))
		return false;
	words->has_any = true;
	return true;
}

static void basic_finish(const struct basic_words *words, unsigned int long_size,
			 struct field_type *type)
{
	if (words->has_char) {
		type->size = 1;
		/* Whether a plain char has a sign is the machine's choice. */
		type->sign_known = words->has_signed || words->has_unsigned;
		type->is_char = !type->sign_known;
	} else {
		type->sign_known = true;
		if (words->has_short)
			type->size = 2;
		else if (words->longs >= 2)
			type->size = 8;
		else
			type->size = words->longs ? (uint8_t)long_size : 4;
	}
	type->is_signed = type->sign_known && !words->has_unsigned;
}

static void field_type_word(struct field_type *type, struct basic_words *words, const char *word,
			    size_t length, unsigned int long_size)
{
	const struct named_type *named;

	if (word_is(word, length, "__data_loc")) {
		type->is_data_loc = true;
	} else if (word_is(word, length, "__rel_loc")) {
		type->is_rel_loc = true;
	} else if (word_is(word, length, "struct") || word_is(word, length, "union")) {
		type->is_compound = true;
	} else if (word_is(word, length, "enum")) {
		type->size = 4;
	} else if (word_is(word, length, "cpumask_t") || word_is(word, length, "cpumask")) {
		type->is_mask = true;
	} else if (!basic_word(words, word, length)) {
		named = named_type_find(word, length);
		if (named && !type->is_compound && !type->size) {
			type->size = named->size ? named->size : (uint8_t)long_size;
			type->sign_known = true;
			type->is_signed = named->is_signed;
		}
	}
}

void field_type_parse(const char *spelling, unsigned int long_size, struct field_type *type)
{
	struct basic_words words = { 0 };
	const char *at = spelling;

	*type = (struct field_type){ 0 };
	while (*at) {
		size_t length = 0;

		while (isalnum((unsigned char)at[length]) || at[length] == '_')
			length++;
		if (length) {
			field_type_word(type, &words, at, length, long_size);
			at += length;
		} else if (*at == '[') {
			/* Whatever stands inside is a count, not a type. */
			type->is_array = true;
			at += strcspn(at, "]");
		} else {
			if (*at == '*')
				type->is_pointer = true;
			at++;
		}
	}
	if (type->is_pointer) {
		type->size = (uint8_t)long_size;
		type->sign_known = true;
		type->is_signed = false;
		type->is_compound = false;
		type->is_mask = false;
	} else if (words.has_any && !type->is_compound) {
		basic_finish(&words, long_size, type);
	}
	type->is_byte = type->size == 1 && !type->is_char;
	if (type->is_mask)
		type->is_compound = false;
}
