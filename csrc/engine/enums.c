/* SPDX-License-Identifier: MIT */
#include "enums.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "strbuf.h"
#include "tracefile.h"

#define BTF_DIR "/sys/kernel/btf"
#define BTF_MAGIC 0xeb9f
#define BTF_HEADER_SIZE 24
#define BTF_TYPE_SIZE 12

enum btf_kind {
	BTF_INT = 1,
	BTF_ARRAY = 3,
	BTF_STRUCT = 4,
	BTF_UNION = 5,
	BTF_ENUM = 6,
	BTF_FUNC_PROTO = 13,
	BTF_VAR = 14,
	BTF_DATASEC = 15,
	BTF_DECL_TAG = 17,
	BTF_KIND_MAX = 19,
	BTF_ENUM64 = 19,
};

struct enum_constant {
	size_t name; /* offset in @names */
	int64_t value;
};

struct enum_table {
	bool is_live; /* /sys/kernel/btf has not been read yet */
	bool is_sorted;
	struct enum_constant *constants;
	size_t count;
	size_t capacity;
	struct strbuf names;
};

/* One BTF file. A module's continues the strings of the kernel's. */
struct btf {
	bool swap;
	const uint8_t *types;
	size_t types_length;
	const char *strings;
	size_t strings_length;
	const struct btf *base;
};

struct enum_table *enum_create(void)
{
	return calloc(1, sizeof(struct enum_table));
}

void enum_free(struct enum_table *table)
{
	if (!table)
		return;
	free(table->constants);
	strbuf_free(&table->names);
	free(table);
}

void enum_set_live(struct enum_table *table)
{
	table->is_live = true;
}

static bool btf_open(struct btf *btf, const uint8_t *bytes, size_t length, const struct btf *base)
{
	uint64_t header, types, strings;

	if (length < BTF_HEADER_SIZE)
		return false;
	*btf = (struct btf){ .base = base };
	if (load_u16(bytes, false) != BTF_MAGIC) {
		if (load_u16(bytes, true) != BTF_MAGIC)
			return false;
		btf->swap = true;
	}
	header = load_u32(bytes + 4, btf->swap);
	types = header + load_u32(bytes + 8, btf->swap);
	btf->types_length = load_u32(bytes + 12, btf->swap);
	strings = header + load_u32(bytes + 16, btf->swap);
	btf->strings_length = load_u32(bytes + 20, btf->swap);
	if (types > length || btf->types_length > length - types || strings > length ||
	    btf->strings_length > length - strings || !btf->strings_length)
		return false;
	btf->types = bytes + types;
	btf->strings = (const char *)bytes + strings;
	return btf->strings[btf->strings_length - 1] == '\0';
}

static const char *btf_string(const struct btf *btf, uint32_t offset)
{
	if (btf->base) {
		if (offset < btf->base->strings_length)
			return btf->base->strings + offset;
		offset -= (uint32_t)btf->base->strings_length;
	}
	return offset < btf->strings_length ? btf->strings + offset : NULL;
}

/* How many bytes follow a type of this kind with @count members. */
static size_t btf_extra(unsigned int kind, size_t count)
{
	switch (kind) {
	case BTF_INT:
	case BTF_VAR:
	case BTF_DECL_TAG:
		return 4;
	case BTF_ARRAY:
		return 12;
	case BTF_STRUCT:
	case BTF_UNION:
	case BTF_DATASEC:
	case BTF_ENUM64:
		return 12 * count;
	case BTF_ENUM:
	case BTF_FUNC_PROTO:
		return 8 * count;
	default:
		return 0;
	}
}

static int enum_push(struct enum_table *table, const char *name, int64_t value)
{
	struct enum_constant *constant;

	if (table->count == table->capacity) {
		size_t capacity = table->capacity ? table->capacity * 2 : 4096;
		struct enum_constant *constants;

		constants = reallocarray(table->constants, capacity, sizeof(*constants));
		if (!constants)
			return -1;
		table->constants = constants;
		table->capacity = capacity;
	}
	constant = &table->constants[table->count];
	constant->name = table->names.length;
	constant->value = value;
	strbuf_add(&table->names, name, strlen(name) + 1);
	if (table->names.failed)
		return -1;
	table->count++;
	table->is_sorted = false;
	return 0;
}

static int enum_add_constants(struct enum_table *table, const struct btf *btf,
			      const uint8_t *members, size_t count, bool is_64bit, bool is_signed)
{
	for (size_t i = 0; i < count; i++, members += is_64bit ? 12 : 8) {
		const char *name = btf_string(btf, load_u32(members, btf->swap));
		int64_t value = load_int(members + 4, 4, is_signed && !is_64bit, btf->swap);

		if (is_64bit)
			value |= (int64_t)((uint64_t)load_u32(members + 8, btf->swap) << 32);
		if (name && enum_push(table, name, value))
			return -1;
	}
	return 0;
}

static int enum_add(struct enum_table *table, const struct btf *btf)
{
	const uint8_t *at = btf->types;
	size_t left = btf->types_length;

	while (left >= BTF_TYPE_SIZE) {
		uint32_t info = load_u32(at + 4, btf->swap);
		unsigned int kind = info >> 24 & 0x1f;
		size_t count = info & 0xffff, extra = btf_extra(kind, count);

		/* A kind that came later has members of unknown size: nothing can follow. */
		if (!kind || kind > BTF_KIND_MAX || extra > left - BTF_TYPE_SIZE)
			return -1;
		if ((kind == BTF_ENUM || kind == BTF_ENUM64) &&
		    enum_add_constants(table, btf, at + BTF_TYPE_SIZE, count, kind == BTF_ENUM64,
				       info >> 31))
			return -1;
		at += BTF_TYPE_SIZE + extra;
		left -= BTF_TYPE_SIZE + extra;
	}
	return 0;
}

int enum_add_btf(struct enum_table *table, const uint8_t *bytes, size_t length)
{
	struct btf btf;

	return btf_open(&btf, bytes, length, NULL) ? enum_add(table, &btf) : -1;
}

static void enum_load_module(struct enum_table *table, const char *name, const struct btf *base)
{
	struct strbuf path = { 0 }, bytes = { 0 };
	struct btf btf;

	strbuf_addf(&path, "%s/%s", BTF_DIR, name);
	if (!path.failed && !tracefile_read(AT_FDCWD, path.text, &bytes) &&
	    btf_open(&btf, (const uint8_t *)bytes.text, bytes.length, base))
		enum_add(table, &btf);
	strbuf_free(&bytes);
	strbuf_free(&path);
}

static void enum_load_live(struct enum_table *table)
{
	struct strbuf bytes = { 0 };
	struct dirent *entry;
	struct btf base;
	DIR *dir;

	table->is_live = false;
	if (!tracefile_read(AT_FDCWD, BTF_DIR "/vmlinux", &bytes) &&
	    btf_open(&base, (const uint8_t *)bytes.text, bytes.length, NULL)) {
		enum_add(table, &base);
		dir = opendir(BTF_DIR);
		while (dir && (entry = readdir(dir)))
			if (entry->d_name[0] != '.' && strcmp(entry->d_name, "vmlinux"))
				enum_load_module(table, entry->d_name, &base);
		if (dir)
			closedir(dir);
	}
	strbuf_free(&bytes);
}

static int enum_compare(const void *left, const void *right, void *names)
{
	const struct enum_constant *a = left, *b = right;
	int order = strcmp((const char *)names + a->name, (const char *)names + b->name);

	return order ? order : a->value < b->value ? -1 : a->value > b->value;
}

int enum_lookup(struct enum_table *table, const char *name, int64_t *value)
{
	size_t low = 0, high, first;

	if (table->is_live)
		enum_load_live(table);
	if (!table->count)
		return -1;
	if (!table->is_sorted) {
		qsort_r(table->constants, table->count, sizeof(table->constants[0]), enum_compare,
			table->names.text);
		table->is_sorted = true;
	}
	high = table->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(table->names.text + table->constants[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	first = low;
	if (first == table->count || strcmp(table->names.text + table->constants[first].name, name))
		return -1;
	/* Two parts of the kernel may use one name for different things. */
	for (; low < table->count; low++) {
		const struct enum_constant *other = &table->constants[low];

		if (strcmp(table->names.text + other->name, name))
			break;
		if (other->value != table->constants[first].value)
			return -1;
	}
	*value = table->constants[first].value;
	return 0;
}
