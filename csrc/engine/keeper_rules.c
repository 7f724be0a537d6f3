/* SPDX-License-Identifier: MIT */
/*
 * What a process without rights may have its keeper do. Whatever is not in these lists is refused:
 * files that kernels get later, too.
 */
#include "keeper_state.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "tracefile.h"

static bool is_one_of(const char *word, size_t length, const char *const *list)
{
	for (; *list; list++) {
		if (strlen(*list) == length && memcmp(*list, word, length) == 0)
			return true;
	}
	return false;
}

/* Plain names with single slashes between them; the names of tracefs have no others. */
static bool is_plain_path(const char *path)
{
	if (!tracefile_is_below(path))
		return false;
	for (const char *at = path; *at; at++) {
		if (!isalnum((unsigned char)*at) && !strchr("/_-.:", *at))
			return false;
		if (*at == '/' && (at[1] == '/' || at[1] == '\0'))
			return false;
		if (*at == '.' && (at == path || at[-1] == '/'))
			return false;
	}
	return true;
}

static unsigned int count_slashes(const char *path)
{
	unsigned int count = 0;

	for (; *path; path++)
		count += *path == '/';
	return count;
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* ------------------------------------------------------------------------- */
/* Triggers                                                                   */
/* ------------------------------------------------------------------------- */

/* All of them act in the instance of the event, which enable_event:SYSTEM:EVENT means too. */
static const char *const trigger_commands[] = {
	"disable_event", "disable_hist", "enable_event", "enable_hist", "hist",
	"snapshot",	 "stacktrace",	 "traceoff",	 "traceon",	NULL,
};

/*
 * A handler of a hist trigger can make synthetic events, which every instance may see; one with a
 * name shares its counts with those of that name elsewhere.
 */
static const char *const beyond_instance[] = { "onmatch", "onmax", "onchange", ":name=", NULL };

static bool allows_trigger(const char *text, size_t length)
{
	const char *at = text;
	size_t word;

	if (memchr(text, '\0', length))
		return false;
	at += strspn(at, " \t");
	if (*at == '!')
		at++;
	word = strcspn(at, ": \t\n");
	if (!is_one_of(at, word, trigger_commands))
		return false;
	for (const char *const *part = beyond_instance; *part; part++) {
		if (strstr(at, *part))
			return false;
	}
	/* one command, and perhaps the newline that ends it */
	at = strchr(text, '\n');
	return !at || at[1] == '\0';
}

/* ------------------------------------------------------------------------- */
/* Files                                                                      */
/* ------------------------------------------------------------------------- */

static const char *const written[] = {
	"set_event",	"set_event_notrace_pid", "set_event_pid",
	"trace_marker", "trace_marker_raw",	 "tracing_on",
	NULL,
};

/* Opened with O_TRUNC and not written to, they are emptied. */
static const char *const cleared[] = { "error_log", "trace", NULL };

/* These take what others write into the top level's buffer. */
static const char *const refused_options[] = { "copy_trace_marker", "trace_printk_dest", NULL };

static bool allows_event_file(const char *path, int flags, const char *text, size_t length)
{
	unsigned int depth = count_slashes(path);
	const char *name = last_name(path);

	if (strcmp(name, "enable") == 0)
		return depth >= 1 && depth <= 3;
	if (strcmp(name, "filter") == 0)
		return depth == 2 || depth == 3;
	if (strcmp(name, "trigger") == 0 && depth == 3)
		return length ? allows_trigger(text, length) : flags & O_TRUNC;
	return false;
}

static bool allows_write(const char *path, int flags, const char *text, size_t length)
{
	if (flags & ~(O_TRUNC | O_APPEND))
		return false;
	if (is_one_of(path, strlen(path), written))
		return true;
	if (is_one_of(path, strlen(path), cleared))
		return length == 0;
	if (strncmp(path, "events/", 7) == 0)
		return allows_event_file(path, flags, text, length);
	if (strncmp(path, "options/", 8) == 0 && count_slashes(path) == 1)
		return !is_one_of(path + 8, strlen(path + 8), refused_options);
	return false;
}

/* Reading the pipes takes records from the process's own stream; opening free_buffer frees. */
static bool allows_read(const char *path)
{
	const char *name = last_name(path);

	return strncmp(name, "trace_pipe", 10) != 0 && strcmp(name, "free_buffer") != 0 &&
	       strcmp(name, "snapshot_raw") != 0;
}

/* Of the top level: what describes events, and turns numbers in records into names. */
static const char *const top_texts[] = {
	"README",
	"available_events",
	"available_tracers",
	"events/header_event",
	"events/header_page",
	"printk_formats",
	"saved_cmdlines",
	"saved_tgids",
	NULL,
};

static bool allows_top_read(const char *path)
{
	if (is_one_of(path, strlen(path), top_texts))
		return true;
	return strncmp(path, "events/", 7) == 0 && count_slashes(path) == 3 &&
	       (strcmp(last_name(path), "format") == 0 || strcmp(last_name(path), "id") == 0);
}

bool keeper_allows(const struct keeper_request *request, const char *path, const char *text)
{
	if (request->call == KEEPER_REMOVE)
		return true;
	if (request->scope == KEEPER_ROOT)
		return request->call == KEEPER_READ && strcmp(path, "/proc/kallsyms") == 0;
	if (!is_plain_path(path))
		return false;
	if (request->scope == KEEPER_TOP)
		return request->call == KEEPER_READ && allows_top_read(path);
	if (request->scope != KEEPER_INSTANCE)
		return false;
	switch (request->call) {
	case KEEPER_READ:
		return allows_read(path);
	case KEEPER_WRITE:
	case KEEPER_WRITE_ALL:
		return allows_write(path, request->flags, text, request->text_length);
	case KEEPER_LIST:
	case KEEPER_EXISTS:
		return true;
	default:
		return false;
	}
}
