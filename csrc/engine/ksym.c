/* SPDX-License-Identifier: MIT */
#include "ksym.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "strbuf.h"
#include "tracefile.h"

struct symbol {
	uint64_t address;
	uint32_t name; /* offsets into @names; 0 is the empty string */
	uint32_t module;
	uint32_t order; /* place in the list */
};

struct ksym_table {
	bool is_live; /* /proc/kallsyms has not been read yet */
	struct lazy_text source;
	bool is_sorted;
	struct symbol *symbols;
	size_t count;
	size_t capacity;
	struct strbuf names;
	/* Where the kernel lies, by its own marks; 0 for those that the list does not have. */
	uint64_t text_start, text_end, init_start, init_end, end;
	size_t data_count;
};

/* Kernels with CONFIG_KALLSYMS_ALL list tens of thousands. */
#define DATA_SYMBOLS_MIN 1000

/* No module function is that long: behind it nobody knows what an address belongs to. */
#define MODULE_SYMBOL_SIZE_MAX (1024 * 1024)

struct ksym_table *ksym_create(void)
{
	return calloc(1, sizeof(struct ksym_table));
}

void ksym_free(struct ksym_table *table)
{
	if (!table)
		return;
	if (table->source.drop)
		table->source.drop(table->source.context);
	free(table->symbols);
	strbuf_free(&table->names);
	free(table);
}

void ksym_set_live(struct ksym_table *table)
{
	table->is_live = true;
}

void ksym_set_lazy(struct ksym_table *table, struct lazy_text source)
{
	if (table->source.drop)
		table->source.drop(table->source.context);
	table->source = source;
}

/* Offset of the copy of @text among the names, 0 when memory is short. */
static uint32_t ksym_name(struct ksym_table *table, const char *text, size_t length)
{
	size_t offset;

	if (!table->names.length)
		strbuf_add_char(&table->names, '\0');
	offset = table->names.length;
	if (offset + length >= UINT32_MAX)
		return 0;
	strbuf_add(&table->names, text, length);
	strbuf_add_char(&table->names, '\0');
	return table->names.failed ? 0 : (uint32_t)offset;
}

static bool ksym_push(struct ksym_table *table, const struct symbol *symbol)
{
	if (table->count == table->capacity) {
		size_t capacity = table->capacity ? table->capacity * 2 : 4096;
		struct symbol *symbols;

		symbols = reallocarray(table->symbols, capacity, sizeof(*symbols));
		if (!symbols)
			return false;
		table->symbols = symbols;
		table->capacity = capacity;
	}
	table->symbols[table->count++] = *symbol;
	return true;
}

static size_t word_length(const char *at, const char *end)
{
	const char *start = at;

	while (at < end && !isspace((unsigned char)*at))
		at++;
	return (size_t)(at - start);
}

/* "ADDRESS T NAME" or "ADDRESS T NAME\t[MODULE]". False for anything else. */
static bool ksym_parse_line(const char *at, const char *end, struct symbol *symbol,
			    const char **name, size_t *name_length, const char **module,
			    size_t *module_length)
{
	size_t digits = 0;

	*symbol = (struct symbol){ 0 };
	while (at < end && isxdigit((unsigned char)*at) && ++digits <= 16) {
		int c = tolower((unsigned char)*at++);

		symbol->address = symbol->address << 4 |
				  (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	if (!digits || digits > 16 || end - at < 4 || at[0] != ' ' || at[2] != ' ')
		return false;
	*name = at + 3;
	*name_length = word_length(*name, end);
	at = *name + *name_length;
	while (at < end && isspace((unsigned char)*at))
		at++;
	*module = NULL;
	*module_length = 0;
	if (at < end && *at == '[') {
		const char *close = memchr(at, ']', (size_t)(end - at));

		if (close && close > at + 1) {
			*module = at + 1;
			*module_length = (size_t)(close - at - 1);
		}
	}
	return *name_length > 0;
}

/* Per-CPU variables have small numbers for addresses; they are no part of the kernel. */
static void ksym_note_bounds(struct ksym_table *table, uint64_t address, char type,
			     const char *name, size_t length)
{
	const struct {
		const char *name;
		uint64_t *bound;
	} marks[] = {
		{ "_stext", &table->text_start },
		{ "_etext", &table->text_end },
		{ "_sinittext", &table->init_start },
		{ "_einittext", &table->init_end },
		{ "_end", &table->end },
	};

	if (strchr("dDbBrR", type))
		table->data_count++;
	if (*name != '_')
		return;
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (strlen(marks[i].name) == length && !memcmp(name, marks[i].name, length))
			*marks[i].bound = address;
}

/*
 * A kernel that lists its functions only lists some marks between data too; what lies behind
 * them belongs to no symbol there.
 */
static bool ksym_is_kernel(const struct ksym_table *table, uint64_t address)
{
	uint64_t end = table->text_end;

	if (!table->text_start)
		return true;
	if (!end || table->data_count > DATA_SYMBOLS_MIN)
		end = table->end ? table->end : UINT64_MAX;
	return (address >= table->text_start && address < end) ||
	       (address >= table->init_start && address < table->init_end);
}

int ksym_add_kallsyms(struct ksym_table *table, const char *text, size_t length)
{
	const char *last_module = NULL;
	size_t last_length = 0;
	uint32_t last_offset = 0;

	while (length) {
		const char *newline = memchr(text, '\n', length);
		const char *end = newline ? newline : text + length;
		const char *name, *module;
		size_t name_length, module_length;
		struct symbol symbol;

		/* Without the right to see them all addresses are 0: such a line says nothing. */
		if (ksym_parse_line(text, end, &symbol, &name, &name_length, &module,
				    &module_length) &&
		    symbol.address) {
			symbol.name = ksym_name(table, name, name_length);
			if (module && module_length == last_length && last_module &&
			    !memcmp(module, last_module, module_length)) {
				symbol.module = last_offset;
			} else if (module) {
				symbol.module = ksym_name(table, module, module_length);
				last_module = module;
				last_length = module_length;
				last_offset = symbol.module;
			}
			if (!module)
				ksym_note_bounds(table, symbol.address, name[-2], name,
						 name_length);
			symbol.order = (uint32_t)table->count;
			if (table->names.failed || !ksym_push(table, &symbol))
				return -1;
			table->is_sorted = false;
		}
		length -= (size_t)(end - text) + (newline ? 1 : 0);
		text = newline ? newline + 1 : end;
	}
	return 0;
}

static int ksym_compare(const void *left, const void *right)
{
	const struct symbol *a = left, *b = right;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static void ksym_load_live(struct ksym_table *table)
{
	struct strbuf text = { 0 };

	table->is_live = false;
	if (!tracefile_read(AT_FDCWD, "/proc/kallsyms", &text) && text.length)
		ksym_add_kallsyms(table, text.text, text.length);
	strbuf_free(&text);
}

static void ksym_load_lazy(struct ksym_table *table)
{
	struct strbuf text = { 0 };

	if (!table->source.load(table->source.context, &text) && text.length)
		ksym_add_kallsyms(table, text.text, text.length);
	table->source.load = NULL;
	strbuf_free(&text);
}

int ksym_lookup(struct ksym_table *table, uint64_t address, struct ksym *symbol)
{
	const struct symbol *found;
	size_t low = 0, high, next;

	if (table->is_live)
		ksym_load_live(table);
	if (table->source.load)
		ksym_load_lazy(table);
	if (!table->is_sorted && table->count) {
		qsort(table->symbols, table->count, sizeof(table->symbols[0]), ksym_compare);
		table->is_sorted = true;
	}
	/* The last symbol that starts at or below the address. */
	high = table->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -1;
	next = low;
	/* Of several names at one address the kernel takes the first of its list. */
	found = &table->symbols[low - 1];
	while (found > table->symbols && found[-1].address == found->address)
		found--;
	if (found->module ? address - found->address >= MODULE_SYMBOL_SIZE_MAX :
			    !ksym_is_kernel(table, address))
		return -1;
	symbol->name = table->names.text + found->name;
	symbol->module = found->module ? table->names.text + found->module : NULL;
	symbol->offset = address - found->address;
	symbol->size = next < table->count ? table->symbols[next].address - found->address : 0;
	return 0;
}
