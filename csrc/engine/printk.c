/* SPDX-License-Identifier: MIT */
#include "printk.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strbuf.h"
#include "tracefile.h"

struct printk_string {
	uint64_t address;
	char *text;
};

struct printk_table {
	char *path; /* of what has not been read yet, or NULL */
	struct lazy_text source;
	struct printk_string *strings;
	size_t count;
	size_t capacity;
	bool is_sorted;
};

struct printk_table *printk_create(void)
{
	return calloc(1, sizeof(struct printk_table));
}

void printk_free(struct printk_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < table->count; i++)
		free(table->strings[i].text);
	if (table->source.drop)
		table->source.drop(table->source.context);
	free(table->strings);
	free(table->path);
	free(table);
}

void printk_set_lazy(struct printk_table *table, struct lazy_text source)
{
	if (table->source.drop)
		table->source.drop(table->source.context);
	table->source = source;
}

int printk_set_live(struct printk_table *table, const char *tracing_dir)
{
	char *path;

	if (asprintf(&path, "%s/printk_formats", tracing_dir) < 0)
		return -1;
	free(table->path);
	table->path = path;
	return 0;
}

/* The kernel shows \n, \t, \" and \\ with a backslash, and everything else as it is. */
static size_t unescape(char *to, const char *from, const char *end)
{
	char *start = to;

	while (from < end) {
		char c = *from++;

		if (c == '\\' && from < end) {
			c = *from++;
			c = c == 'n' ? '\n' : c == 't' ? '\t' : c;
		}
		*to++ = c;
	}
	*to = '\0';
	return (size_t)(to - start);
}

static int printk_push(struct printk_table *table, uint64_t address, const char *text,
		       const char *end)
{
	struct printk_string *string;

	if (table->count == table->capacity) {
		size_t capacity = table->capacity ? table->capacity * 2 : 256;
		struct printk_string *strings;

		strings = reallocarray(table->strings, capacity, sizeof(*strings));
		if (!strings)
			return -1;
		table->strings = strings;
		table->capacity = capacity;
	}
	string = &table->strings[table->count];
	string->address = address;
	string->text = malloc((size_t)(end - text) + 1);
	if (!string->text)
		return -1;
	unescape(string->text, text, end);
	table->count++;
	table->is_sorted = false;
	return 0;
}

/* `0xADDRESS : "TEXT"` */
static int printk_add_line(struct printk_table *table, const char *at, const char *end)
{
	uint64_t address = 0;
	size_t digits = 0;

	if (end - at < 2 || at[0] != '0' || at[1] != 'x')
		return 0;
	for (at += 2; at < end && isxdigit((unsigned char)*at); at++, digits++) {
		int c = tolower((unsigned char)*at);

		address = address << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
	}
	while (at < end && (*at == ' ' || *at == ':'))
		at++;
	if (!digits || digits > 16 || end - at < 2 || *at != '"' || end[-1] != '"')
		return 0;
	return printk_push(table, address, at + 1, end - 1);
}

int printk_add(struct printk_table *table, const char *text, size_t length)
{
	while (length) {
		const char *newline = memchr(text, '\n', length);
		const char *end = newline ? newline : text + length;

		if (printk_add_line(table, text, end))
			return -1;
		length -= (size_t)(end - text) + (newline ? 1 : 0);
		text = newline ? newline + 1 : end;
	}
	return 0;
}

static int printk_compare(const void *left, const void *right)
{
	const struct printk_string *a = left, *b = right;

	return a->address < b->address ? -1 : a->address > b->address;
}

static void printk_load(struct printk_table *table)
{
	struct strbuf text = { 0 };

	if (!tracefile_read(AT_FDCWD, table->path, &text) && text.length)
		printk_add(table, text.text, text.length);
	strbuf_free(&text);
	free(table->path);
	table->path = NULL;
}

static void printk_load_lazy(struct printk_table *table)
{
	struct strbuf text = { 0 };

	if (!table->source.load(table->source.context, &text) && text.length)
		printk_add(table, text.text, text.length);
	table->source.load = NULL;
	strbuf_free(&text);
}

const char *printk_lookup(struct printk_table *table, uint64_t address)
{
	const struct printk_string key = { .address = address }, *found;

	if (table->path)
		printk_load(table);
	if (table->source.load)
		printk_load_lazy(table);
	if (!table->count)
		return NULL;
	if (!table->is_sorted) {
		qsort(table->strings, table->count, sizeof(key), printk_compare);
		table->is_sorted = true;
	}
	found = bsearch(&key, table->strings, table->count, sizeof(key), printk_compare);
	return found ? found->text : NULL;
}
