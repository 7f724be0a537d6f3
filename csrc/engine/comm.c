/* SPDX-License-Identifier: MIT */
#include "comm.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "strbuf.h"
#include "tracefile.h"

/* Interned names: a chain of pieces that never move. */
struct comm_name {
	struct comm_name *next;
	char text[];
};

struct comm_entry {
	int pid;
	bool is_used;
	bool is_missing; /* asked for since the last expiry and not found */
	const char *name;
	unsigned int proc_round; /* when /proc said so; 0: the tracer did */
};

#define NAME_BUCKETS 256

struct comm_table {
	struct comm_entry *entries; /* open addressing, a power of two */
	size_t capacity;
	size_t count;
	struct comm_name *names[NAME_BUCKETS];
	char *saved_cmdlines; /* path, NULL when not live */
	bool is_expired;
	unsigned int round; /* counts how often saved_cmdlines has been read */
};

struct comm_table *comm_create(void)
{
	return calloc(1, sizeof(struct comm_table));
}

void comm_free(struct comm_table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i < NAME_BUCKETS; i++) {
		struct comm_name *name = table->names[i];

		while (name) {
			struct comm_name *next = name->next;

			free(name);
			name = next;
		}
	}
	free(table->entries);
	free(table->saved_cmdlines);
	free(table);
}

int comm_set_live(struct comm_table *table, const char *tracing_dir)
{
	char *path;

	if (asprintf(&path, "%s/saved_cmdlines", tracing_dir) < 0)
		return -1;
	free(table->saved_cmdlines);
	table->saved_cmdlines = path;
	table->is_expired = true;
	return 0;
}

void comm_expire(struct comm_table *table)
{
	table->is_expired = true;
}

/* The one copy of @text, NULL when memory is short. */
static const char *comm_intern(struct comm_table *table, const char *text, size_t length)
{
	struct comm_name *name;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	for (name = table->names[hash % NAME_BUCKETS]; name; name = name->next)
		if (!strncmp(name->text, text, length) && !name->text[length])
			return name->text;
	name = malloc(sizeof(*name) + length + 1);
	if (!name)
		return NULL;
	memcpy(name->text, text, length);
	name->text[length] = '\0';
	name->next = table->names[hash % NAME_BUCKETS];
	table->names[hash % NAME_BUCKETS] = name;
	return name->text;
}

/* The pid's place, or the free one where it belongs. @capacity must not be 0. */
static struct comm_entry *comm_slot(struct comm_entry *entries, size_t capacity, int pid)
{
	size_t at = ((uint32_t)pid * 2654435761u) & (capacity - 1);

	while (entries[at].is_used && entries[at].pid != pid)
		at = (at + 1) & (capacity - 1);
	return &entries[at];
}

static bool comm_grow(struct comm_table *table)
{
	size_t capacity = table->capacity ? table->capacity * 2 : 256;
	struct comm_entry *entries;

	if (table->count * 2 < table->capacity)
		return true;
	entries = calloc(capacity, sizeof(*entries));
	if (!entries)
		return false;
	for (size_t i = 0; i < table->capacity; i++)
		if (table->entries[i].is_used)
			*comm_slot(entries, capacity, table->entries[i].pid) = table->entries[i];
	free(table->entries);
	table->entries = entries;
	table->capacity = capacity;
	return true;
}

static struct comm_entry *comm_put(struct comm_table *table, int pid, const char *name)
{
	struct comm_entry *entry;

	if (!comm_grow(table))
		return NULL;
	entry = comm_slot(table->entries, table->capacity, pid);
	if (!entry->is_used)
		table->count++;
	*entry = (struct comm_entry){ .pid = pid, .is_used = true, .name = name };
	return entry;
}

int comm_set(struct comm_table *table, int pid, const char *name)
{
	const char *copy = comm_intern(table, name, strlen(name));

	return copy && comm_put(table, pid, copy) ? 0 : -1;
}

/* A name may have spaces. */
int comm_add_saved(struct comm_table *table, const char *text, size_t length)
{
	while (length) {
		const char *newline = memchr(text, '\n', length);
		size_t line = newline ? (size_t)(newline - text) : length;
		const char *at = text, *end = text + line, *name;
		uint64_t pid = 0;

		while (at < end && isdigit((unsigned char)*at) && pid <= INT32_MAX)
			pid = pid * 10 + (uint64_t)(*at++ - '0');
		if (at > text && at < end && *at == ' ' && pid <= INT32_MAX) {
			name = comm_intern(table, at + 1, strnlen(at + 1, (size_t)(end - at - 1)));
			if (!name || !comm_put(table, (int)pid, name))
				return -1;
		}
		line += newline ? 1 : 0;
		text += line;
		length -= line;
	}
	return 0;
}

static void comm_load(struct comm_table *table)
{
	struct strbuf text = { 0 };

	table->is_expired = false;
	table->round++;
	for (size_t i = 0; i < table->capacity; i++)
		table->entries[i].is_missing = false;
	if (!tracefile_read(AT_FDCWD, table->saved_cmdlines, &text) && text.length)
		comm_add_saved(table, text.text, text.length);
	strbuf_free(&text);
}

/* A task that is still there but was never seen switching. */
static const char *comm_from_proc(struct comm_table *table, int pid)
{
	struct strbuf text = { 0 };
	const char *name = NULL;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	if (!tracefile_read(AT_FDCWD, path, &text) && text.length) {
		if (text.text[text.length - 1] == '\n')
			text.text[--text.length] = '\0';
		/* There the kernel adds what the worker works on; records do not have it. */
		if (!strncmp(text.text, "kworker/", strlen("kworker/")))
			text.length = strcspn(text.text, "-+");
		name = comm_intern(table, text.text, text.length);
	}
	strbuf_free(&text);
	return name;
}

const char *comm_lookup(struct comm_table *table, int pid)
{
	struct comm_entry *entry = NULL;
	const char *name;

	if (!pid)
		return "<idle>";
	if (pid < 0)
		return "<XXX>";
	if (table->saved_cmdlines && table->is_expired)
		comm_load(table);
	if (table->capacity)
		entry = comm_slot(table->entries, table->capacity, pid);
	if (entry && entry->is_used && !entry->is_missing && entry->name &&
	    (!entry->proc_round || entry->proc_round == table->round))
		return entry->name;
	if (!table->saved_cmdlines || (entry && entry->is_used && entry->is_missing))
		return "<...>";
	/* The number of a task that has ended may be another one's by now. */
	name = comm_from_proc(table, pid);
	if (!name && entry && entry->is_used && entry->name) {
		entry->proc_round = table->round;
		return entry->name;
	}
	entry = comm_put(table, pid, name);
	if (entry && name)
		entry->proc_round = table->round;
	else if (entry)
		entry->is_missing = true;
	return name ? name : "<...>";
}
