/* SPDX-License-Identifier: MIT */
#include "datameta.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock.h"
#include "datahead.h"
#include "page.h"
#include "tracefile.h"

/* No kernel has so many: formats of a hostile tracing directory end somewhere. */
#define MAX_FORMATS 100000

static void free_format(struct data_format *format)
{
	free(format->system);
	free(format->name);
	strbuf_free(&format->text);
}

void data_meta_free(struct data_meta *meta)
{
	for (size_t i = 0; i < meta->format_count; i++)
		free_format(&meta->formats[i]);
	free(meta->formats);
	free(meta->before);
	strbuf_free(&meta->header_page);
	strbuf_free(&meta->header_event);
	strbuf_free(&meta->kallsyms);
	strbuf_free(&meta->printk);
	strbuf_free(&meta->cmdlines);
	strbuf_free(&meta->options);
	memset(meta, 0, sizeof(*meta));
}

void data_meta_add_option(struct data_meta *meta, enum data_option id, const void *bytes,
			  size_t length)
{
	data_put_int(&meta->options, id, 2, meta->big_endian);
	data_put_int(&meta->options, length, 4, meta->big_endian);
	strbuf_add(&meta->options, bytes, length);
}

static void add_option_text(struct data_meta *meta, enum data_option id, const char *text)
{
	data_meta_add_option(meta, id, text, strlen(text) + 1);
}

/* Where a format of this system and name belongs; @exact tells whether one is there. */
static size_t find_place(const struct data_meta *meta, const char *system, const char *name,
			 const char *text, size_t length, bool *exact)
{
	size_t place = 0;

	*exact = false;
	for (size_t i = 0; i < meta->format_count; i++) {
		const struct data_format *format = &meta->formats[i];
		int order = strcmp(format->system, system);

		if (order == 0 && strcmp(format->name, name) == 0 &&
		    format->text.length == length && memcmp(format->text.text, text, length) == 0) {
			*exact = true;
			return i;
		}
		if (order <= 0)
			place = i + 1;
	}
	return place;
}

int data_meta_add_format(struct data_meta *meta, const char *system, const char *name,
			 const char *text, size_t length)
{
	struct data_format format = { 0 };
	bool exact;
	size_t place = find_place(meta, system, name, text, length, &exact);

	if (exact || !length)
		return 0;
	if (meta->format_count >= MAX_FORMATS)
		return -1;
	if (meta->format_count == meta->format_capacity) {
		size_t capacity = meta->format_capacity ? 2 * meta->format_capacity : 64;
		struct data_format *formats =
			reallocarray(meta->formats, capacity, sizeof(*formats));

		if (!formats)
			return -1;
		meta->formats = formats;
		meta->format_capacity = capacity;
	}
	format.system = strdup(system);
	format.name = strdup(name);
	strbuf_add(&format.text, text, length);
	if (!format.system || !format.name || format.text.failed) {
		free_format(&format);
		return -1;
	}
	memmove(&meta->formats[place + 1], &meta->formats[place],
		(meta->format_count - place) * sizeof(format));
	meta->formats[place] = format;
	meta->format_count++;
	return 0;
}

static int no_memory(struct trace_error *error)
{
	return error_set(error, ENOMEM, "no memory for what a trace file says of its events");
}

int data_meta_gather_event(struct data_meta *meta, struct instance *instance, const char *system,
			   const char *name, struct trace_error *error)
{
	struct strbuf text = { 0 };
	char path[512];
	int result = 0;

	if (!tracefile_is_name(system) || !tracefile_is_name(name))
		return 0;
	snprintf(path, sizeof(path), "events/%s/%s/format", system, name);
	/* gone meanwhile, or ftrace's own that has no format */
	if (tracefile_read(instance_dir_fd(instance), path, &text) == 0 && text.length)
		result = data_meta_add_format(meta, system, name, text.text, text.length);
	if (result < 0 || text.failed)
		result = no_memory(error);
	strbuf_free(&text);
	return result;
}

static int gather_ftrace(struct data_meta *meta, struct instance *instance,
			 struct trace_error *error)
{
	char **names;
	int result = 0;

	if (tracefile_list(instance_dir_fd(instance), "events/ftrace", &names) < 0)
		return 0;
	for (size_t i = 0; names[i] && result == 0; i++) {
		if (strcmp(names[i], "enable") != 0 && strcmp(names[i], "filter") != 0)
			result = data_meta_gather_event(meta, instance, "ftrace", names[i], error);
	}
	free(names);
	return result;
}

/* Lines "system:name". */
static int gather_enabled(struct data_meta *meta, struct instance *instance,
			  struct trace_error *error)
{
	struct strbuf list = { 0 };
	char *line, *next, *colon;
	int result;

	result = instance_read(instance, "set_event", &list, error);
	for (line = list.text; result == 0 && line && *line; line = next) {
		next = strchrnul(line, '\n');
		if (*next)
			*next++ = '\0';
		colon = strchr(line, ':');
		if (!colon)
			continue;
		*colon = '\0';
		result = data_meta_gather_event(meta, instance, line, colon + 1, error);
	}
	strbuf_free(&list);
	return result;
}

/* A file of the tracing directory itself or of /proc that a kernel may not have. */
static void read_optional(int dir_fd, const char *file, struct strbuf *out)
{
	strbuf_reset(out);
	if (tracefile_read(dir_fd, file, out) < 0)
		strbuf_reset(out);
}

/*
 * Readers that may not see addresses get a list of zeroes, which would give every address
 * the last symbol's name.
 */
static void drop_hidden_symbols(struct strbuf *kallsyms)
{
	const char *line = kallsyms->text;

	while (line && *line) {
		if (strspn(line, "0") < strcspn(line, " \n"))
			return;
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	strbuf_reset(kallsyms);
}

/* "PID NAME\n", and a name that says something. */
static bool is_name_line(const char *line, size_t length)
{
	static const char mark[] = " <...>\n";
	size_t digits = strspn(line, "0123456789");

	if (!digits || digits > 10 || length < digits + 3 || line[digits] != ' ')
		return false;
	return length != digits + sizeof(mark) - 1 ||
	       memcmp(line + digits, mark, sizeof(mark) - 1) != 0;
}

/*
 * The tracer lists also tasks whose name it has given up, as <...>. And a task may have a line
 * feed in its name: readers stop at a line that begins without a pid.
 */
static void drop_no_names(struct strbuf *lines)
{
	char *at = lines->text, *out = lines->text, *end;

	for (; at && *at; at = end) {
		end = strchrnul(at, '\n');
		end += *end == '\n';
		if (!is_name_line(at, (size_t)(end - at)))
			continue;
		memmove(out, at, (size_t)(end - at));
		out += end - at;
	}
	if (lines->text) {
		*out = '\0';
		lines->length = (size_t)(out - lines->text);
	}
}

/* The kernel gives no pid above this (PID_MAX_LIMIT). */
#define PIDS (4 * 1024 * 1024)

/* Notes a pid, as the digits at @text say it. Was it there before, or is it none? */
static bool note_pid(uint8_t *seen, const char *text)
{
	unsigned long pid = strtoul(text, NULL, 10);
	bool was_seen;

	if (pid >= PIDS)
		return true;
	was_seen = seen[pid / 8] & (1U << pid % 8);
	seen[pid / 8] |= (uint8_t)(1U << pid % 8);
	return was_seen;
}

/* Notes the pids of lines "PID NAME"; those that are new are added to @names if there is one. */
static void note_lines(uint8_t *seen, const char *lines, struct strbuf *names)
{
	const char *line, *end;

	for (line = lines; line && *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		if (!note_pid(seen, line) && names)
			strbuf_addf(names, "%.*s\n", (int)(end - line), line);
	}
}

/*
 * The tracer remembers the names of few tasks, and forgets one for another. Those that it knew
 * when this was gathered before and those of processes that are still there are added.
 */
static void add_names(struct strbuf *names, const struct strbuf *before)
{
	uint8_t *seen = calloc(PIDS / 8, 1);
	struct strbuf comm = { 0 };
	char path[64], **pids;

	drop_no_names(names);
	if (!seen)
		return;
	note_lines(seen, names->text, NULL);
	note_lines(seen, before->text, names);
	if (tracefile_list(AT_FDCWD, "/proc", &pids) < 0)
		pids = NULL;
	for (size_t i = 0; pids && pids[i]; i++) {
		if (pids[i][strspn(pids[i], "0123456789")] || strlen(pids[i]) > 10 ||
		    note_pid(seen, pids[i]))
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", pids[i]);
		read_optional(AT_FDCWD, path, &comm);
		if (comm.length > 1 && comm.text[0] != '\n')
			strbuf_addf(names, "%s %.*s\n", pids[i], (int)strcspn(comm.text, "\n"),
				    comm.text);
	}
	free(pids);
	strbuf_free(&comm);
	free(seen);
}

static int gather_tables(struct data_meta *meta, struct instance *instance,
			 struct trace_error *error)
{
	struct strbuf before = meta->cmdlines;
	int top = open(instance_tracing_dir(instance), O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (top < 0) {
		int err = errno;

		return error_set(error, err, "cannot open %s: %s", instance_tracing_dir(instance),
				 strerror(err));
	}
	read_optional(AT_FDCWD, "/proc/kallsyms", &meta->kallsyms);
	drop_hidden_symbols(&meta->kallsyms);
	read_optional(top, "printk_formats", &meta->printk);
	memset(&meta->cmdlines, 0, sizeof(meta->cmdlines));
	read_optional(top, "saved_cmdlines", &meta->cmdlines);
	add_names(&meta->cmdlines, &before);
	strbuf_free(&before);
	close(top);
	return 0;
}

int data_meta_begin_here(struct data_meta *meta, struct instance *instance,
			 struct trace_error *error)
{
	unsigned int *cpus = NULL;
	int count = instance_cpus(instance, &cpus, error), result = 0;

	if (count < 0)
		return -1;
	free(meta->before);
	meta->before = calloc((size_t)count, sizeof(*meta->before));
	meta->before_count = meta->before ? (unsigned int)count : 0;
	for (unsigned int i = 0; result == 0 && i < meta->before_count; i++)
		result = instance_stats(instance, cpus[i], &meta->before[i], error);
	free(cpus);
	return meta->before ? result : no_memory(error);
}

/* A line of the kernel's statistics, without what had been lost before. */
static void add_stats_line(struct strbuf *out, const char *line, size_t length,
			   const struct buffer_stats *before)
{
	const struct {
		const char *label;
		uint64_t before;
	} losses[] = {
		{ "overrun: ", before->overrun },
		{ "commit overrun: ", before->commit_overrun },
		{ "dropped events: ", before->dropped },
	};

	for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
		size_t label = strlen(losses[i].label);
		uint64_t now;

		if (length <= label || memcmp(line, losses[i].label, label) != 0)
			continue;
		now = strtoull(line + label, NULL, 10);
		strbuf_addf(out, "%s%" PRIu64, losses[i].label,
			    now > losses[i].before ? now - losses[i].before : 0);
		return;
	}
	strbuf_add(out, line, length);
}

static void add_stats_text(struct strbuf *out, const char *text, const struct buffer_stats *before)
{
	const char *end;

	for (; *text; text = *end ? end + 1 : end) {
		end = strchrnul(text, '\n');
		add_stats_line(out, text, (size_t)(end - text), before);
		strbuf_add_char(out, '\n');
	}
}

static void add_stats(struct data_meta *meta, struct instance *instance)
{
	static const struct buffer_stats none;
	struct strbuf text = { 0 }, stats = { 0 };
	unsigned int *cpus = NULL;
	char path[64];
	int count = instance_cpus(instance, &cpus, NULL);

	meta->cpu_count = count > 0 ? cpus[count - 1] + 1 : 1;
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "per_cpu/cpu%u/stats", cpus[i]);
		read_optional(instance_dir_fd(instance), path, &stats);
		strbuf_reset(&text);
		strbuf_addf(&text, "CPU: %u\n", cpus[i]);
		add_stats_text(&text, stats.length ? stats.text : "",
			       (unsigned int)i < meta->before_count ? &meta->before[i] : &none);
		if (!text.failed)
			add_option_text(meta, DATA_OPTION_CPUSTAT, text.text);
	}
	strbuf_free(&text);
	strbuf_free(&stats);
	free(cpus);
}

static int gather_options(struct data_meta *meta, struct instance *instance,
			  struct trace_error *error)
{
	struct strbuf clock = { 0 };
	struct utsname names;
	uint8_t id[8];
	char text[512];
	const char *start, *end;

	strbuf_reset(&meta->options);
	if (instance_read(instance, "trace_clock", &clock, error) < 0) {
		strbuf_free(&clock);
		return -1;
	}
	start = clock.text ? strchr(clock.text, '[') : NULL;
	end = start ? strchr(start, ']') : NULL;
	snprintf(meta->clock, sizeof(meta->clock), "%.*s", end ? (int)(end - start - 1) : 5,
		 end ? start + 1 : "local");
	add_stats(meta, instance);
	add_option_text(meta, DATA_OPTION_TRACECLOCK, clock.text ? clock.text : "");
	strbuf_free(&clock);
	if (uname(&names) == 0) {
		snprintf(text, sizeof(text), "%s %s %s %s", names.sysname, names.nodename,
			 names.release, names.machine);
		add_option_text(meta, DATA_OPTION_UNAME, text);
	}
	add_option_text(meta, DATA_OPTION_VERSION, "luatrace");
	memcpy(id, &(uint64_t){ meta->trace_id }, sizeof(id));
	data_meta_add_option(meta, DATA_OPTION_TRACEID, id, sizeof(id));
	return 0;
}

static uint64_t new_trace_id(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + (uint64_t)getpid();
}

int data_meta_gather(struct data_meta *meta, struct instance *instance, struct trace_error *error)
{
	struct page_layout layout;

	meta->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	meta->long_size = sizeof(long);
	if (!meta->trace_id)
		meta->trace_id = new_trace_id();
	strbuf_reset(&meta->header_page);
	strbuf_reset(&meta->header_event);
	if (instance_read(instance, "events/header_page", &meta->header_page, error) < 0 ||
	    page_layout_parse(&layout, meta->header_page.text, meta->header_page.length,
			      meta->big_endian, error) < 0 ||
	    instance_read(instance, "events/header_event", &meta->header_event, error) < 0)
		return -1;
	meta->page_size = layout.size;
	if (gather_ftrace(meta, instance, error) < 0 || gather_enabled(meta, instance, error) < 0 ||
	    gather_tables(meta, instance, error) < 0 || gather_options(meta, instance, error) < 0)
		return -1;
	if (meta->kallsyms.failed || meta->printk.failed || meta->cmdlines.failed ||
	    meta->options.failed)
		return no_memory(error);
	return 0;
}
