/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "usersym.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "elfsym.h"
#include "tracefile.h"

/* When they are exceeded all are forgotten, and found again. */
#define PROCESSES_MAX 512
#define FILES_MAX 256

/* What a process has mapped may change all the time; reading it takes some 50 us. */
#define MAPS_AGE_NS INT64_C(200000000)

#define FUNCTIONS_MAX 4000000
#define FILE_SIZE_MAX (INT64_C(1) << 30)

struct function {
	uint64_t offset; /* in the file */
	uint64_t size;
	size_t name; /* in the names */
};

/* The functions of a file, by where they are in it. */
struct elf_functions {
	char *key; /* "DEVICE INODE PATH" */
	char *name;
	struct function *functions;
	size_t count;
	size_t capacity;
	struct strbuf names;
};

struct mapping {
	uint64_t start;
	uint64_t end;
	uint64_t offset;
	char *key;
	struct elf_functions *file; /* NULL until it is asked for */
};

struct process {
	int tgid;
	int64_t read_at;
	struct mapping *mappings; /* with code */
	size_t count;
};

struct usersym_table {
	struct process *processes;
	size_t process_count;
	struct elf_functions *files[FILES_MAX];
	size_t file_count;
};

struct usersym_table *usersym_create(void)
{
	return calloc(1, sizeof(struct usersym_table));
}

static void forget_mappings(struct process *process)
{
	for (size_t i = 0; i < process->count; i++)
		free(process->mappings[i].key);
	free(process->mappings);
	process->mappings = NULL;
	process->count = 0;
}

static void forget_files(struct usersym_table *table)
{
	for (size_t i = 0; i < table->file_count; i++) {
		free(table->files[i]->key);
		free(table->files[i]->functions);
		strbuf_free(&table->files[i]->names);
		free(table->files[i]);
	}
	table->file_count = 0;
	for (size_t i = 0; i < table->process_count; i++)
		for (size_t k = 0; k < table->processes[i].count; k++)
			table->processes[i].mappings[k].file = NULL;
}

static void forget_processes(struct usersym_table *table)
{
	for (size_t i = 0; i < table->process_count; i++)
		forget_mappings(&table->processes[i]);
	table->process_count = 0;
}

void usersym_free(struct usersym_table *table)
{
	if (!table)
		return;
	forget_processes(table);
	forget_files(table);
	free(table->processes);
	free(table);
}

static int64_t monotonic_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* "START-END r-xp OFFSET DEVICE INODE   PATH"; false for what has no code. */
static bool parse_mapping(const char *line, struct mapping *mapping)
{
	char permissions[5], device[16];
	uint64_t inode;
	int path = 0;

	*mapping = (struct mapping){ 0 };
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %15s %" SCNu64 " %n",
		   &mapping->start, &mapping->end, permissions, &mapping->offset, device, &inode,
		   &path) < 6 ||
	    !path || permissions[2] != 'x' || mapping->end <= mapping->start)
		return false;
	return asprintf(&mapping->key, "%s %" PRIu64 " %s", device, inode, line + path) > 0;
}

static const char *path_of(const struct mapping *mapping)
{
	const char *at = strchr(mapping->key, ' ');

	at = at ? strchr(at + 1, ' ') : NULL;
	return at ? at + 1 : "";
}

/* An ended process has none any more: what it had stays known. */
static void read_mappings(struct process *process)
{
	struct process fresh = { .tgid = process->tgid };
	struct strbuf text = { 0 };
	size_t capacity = 0;
	char path[64], *line, *rest;

	process->read_at = monotonic_now();
	snprintf(path, sizeof(path), "/proc/%d/maps", process->tgid);
	if (tracefile_read(AT_FDCWD, path, &text) < 0 || !text.length || text.failed) {
		strbuf_free(&text);
		return;
	}
	for (line = strtok_r(text.text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct mapping mapping;

		if (fresh.count == capacity) {
			size_t more = capacity ? 2 * capacity : 16;
			struct mapping *mappings;

			mappings = reallocarray(fresh.mappings, more, sizeof(*mappings));
			if (!mappings)
				break;
			fresh.mappings = mappings;
			capacity = more;
		}
		if (parse_mapping(line, &mapping))
			fresh.mappings[fresh.count++] = mapping;
	}
	strbuf_free(&text);
	forget_mappings(process);
	process->mappings = fresh.mappings;
	process->count = fresh.count;
}

static struct process *find_process(struct usersym_table *table, int tgid)
{
	struct process *process = NULL;

	for (size_t i = 0; i < table->process_count && !process; i++)
		if (table->processes[i].tgid == tgid)
			process = &table->processes[i];
	if (!table->processes)
		table->processes = calloc(PROCESSES_MAX, sizeof(*table->processes));
	if (!table->processes)
		return NULL;
	if (!process) {
		if (table->process_count == PROCESSES_MAX)
			forget_processes(table);
		process = &table->processes[table->process_count++];
		*process = (struct process){ .tgid = tgid };
	} else if (monotonic_now() - process->read_at < MAPS_AGE_NS) {
		return process;
	}
	read_mappings(process);
	return process;
}

static bool add_function(void *context, const char *name, size_t length, uint64_t offset,
			 uint64_t size)
{
	struct elf_functions *file = context;

	if (file->count == file->capacity) {
		size_t capacity = file->capacity ? 2 * file->capacity : 256;
		struct function *functions;

		functions = reallocarray(file->functions, capacity, sizeof(*functions));
		if (!functions)
			return false;
		file->functions = functions;
		file->capacity = capacity;
	}
	file->functions[file->count++] =
		(struct function){ .offset = offset, .size = size, .name = file->names.length };
	strbuf_add(&file->names, name, length);
	strbuf_add(&file->names, "", 1);
	return !file->names.failed && file->count < FUNCTIONS_MAX;
}

/* Of several functions at one place, the one with a size, and then the one that came first. */
static int compare_functions(const void *left, const void *right)
{
	const struct function *a = left, *b = right;

	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (!a->size != !b->size)
		return a->size ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* A mapped device is not opened, nor a file that nobody's program is as large as. */
static void read_functions(struct elf_functions *file, const char *path)
{
	struct trace_error error;
	struct stat info;

	if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= FILE_SIZE_MAX)
		elfsym_each(path, add_function, file, &error);
}

/* The mapping itself names the very file, also when another one has its path by now. */
static void load_functions(struct elf_functions *file, const struct process *process,
			   const struct mapping *mapping)
{
	char *path;

	if (*path_of(mapping) != '/')
		return;
	if (asprintf(&path, "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, process->tgid,
		     mapping->start, mapping->end) < 0)
		return;
	read_functions(file, path);
	free(path);
	if (!file->count) {
		if (asprintf(&path, "/proc/%d/root%s", process->tgid, path_of(mapping)) < 0)
			return;
		read_functions(file, path);
		free(path);
	}
	if (file->count)
		qsort(file->functions, file->count, sizeof(file->functions[0]), compare_functions);
}

static struct elf_functions *find_file(struct usersym_table *table, const struct process *process,
				       const struct mapping *mapping)
{
	const char *path = path_of(mapping), *slash = strrchr(path, '/');
	struct elf_functions *file;

	for (size_t i = 0; i < table->file_count; i++)
		if (strcmp(table->files[i]->key, mapping->key) == 0)
			return table->files[i];
	if (table->file_count == FILES_MAX)
		forget_files(table);
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->key = strdup(mapping->key);
	if (!file->key) {
		free(file);
		return NULL;
	}
	file->name = file->key + strlen(file->key) - strlen(slash ? slash + 1 : path);
	load_functions(file, process, mapping);
	table->files[table->file_count++] = file;
	return file;
}

static struct mapping *find_mapping(const struct process *process, uint64_t address)
{
	for (size_t i = 0; i < process->count; i++)
		if (address >= process->mappings[i].start && address < process->mappings[i].end)
			return &process->mappings[i];
	return NULL;
}

/* The last function that starts at or below @offset and reaches it; NULL when there is none. */
static const struct function *find_function(const struct elf_functions *file, uint64_t offset)
{
	size_t low = 0, high = file->count;
	const struct function *found;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (file->functions[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	found = &file->functions[low - 1];
	while (found > file->functions && found[-1].offset == found->offset)
		found--;
	return !found->size || offset - found->offset < found->size ? found : NULL;
}

void usersym_add(struct usersym_table *table, struct strbuf *out, int tgid, uint64_t address)
{
	struct process *process = tgid > 0 ? find_process(table, tgid) : NULL;
	struct mapping *mapping = process ? find_mapping(process, address) : NULL;
	const struct function *function;

	if (!mapping) {
		strbuf_add_string(out, "[unknown]");
		return;
	}
	if (!mapping->file)
		mapping->file = find_file(table, process, mapping);
	function = mapping->file ? find_function(mapping->file,
						 address - mapping->start + mapping->offset) :
				   NULL;
	if (function)
		strbuf_add_string(out, mapping->file->names.text + function->name);
	else if (!mapping->file || !*mapping->file->name)
		strbuf_add_string(out, "[anonymous]");
	else if (*mapping->file->name == '[')
		strbuf_add_string(out, mapping->file->name);
	else
		strbuf_addf(out, "[%s]", mapping->file->name);
}
