/* SPDX-License-Identifier: MIT */
#include "event_control.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_error.h"
#include "tracefile.h"

static int no_such_event(struct instance *instance, const char *system, const char *name,
			 struct trace_error *error)
{
	bool has_system = false;
	char *dir;

	if (tracefile_is_name(system) && asprintf(&dir, "events/%s", system) >= 0) {
		has_system = instance_has(instance, dir);
		free(dir);
	}
	if (!has_system)
		return error_set(
			error, ENOENT,
			"no event %s:%s: there is no event system %s in %s/events (a module that has "
			"it may not be loaded)",
			system, name, system, instance_dir(instance));
	return error_set(error, ENOENT,
			 "no event %s:%s: the event system %s has no such event (%s/events/%s)",
			 system, name, system, instance_dir(instance), system);
}

char *event_control_file(struct instance *instance, const char *system, const char *name,
			 const char *file, struct trace_error *error)
{
	char *path, *dir;
	bool is_there;

	if (asprintf(&path, "events/%s/%s/%s", system, name, file) < 0) {
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	if (!tracefile_is_name(system) || !tracefile_is_name(name)) {
		no_such_event(instance, system, name, error);
	} else if (instance_has(instance, path) || !instance_has(instance, "tracing_on")) {
		return path;
	} else if (asprintf(&dir, "events/%s/%s/id", system, name) >= 0) {
		is_there = instance_has(instance, dir);
		free(dir);
		if (is_there)
			error_set(
				error, ENOENT,
				"the event %s:%s has no %s (%s/%s): it is one of the tracer's own, "
				"which are not turned on one by one",
				system, name, file, instance_dir(instance), path);
		else
			no_such_event(instance, system, name, error);
	} else {
		error_set(error, ENOMEM, "out of memory");
	}
	free(path);
	return NULL;
}

int instance_enable_event(struct instance *instance, const char *system, const char *name, bool on,
			  struct trace_error *error)
{
	char *file = event_control_file(instance, system, name, "enable", error);
	int result;

	if (!file)
		return -1;
	result = instance_write(instance, file, on ? "1" : "0", 1, error);
	free(file);
	return result;
}

int instance_event_is_enabled(struct instance *instance, const char *system, const char *name,
			      struct trace_error *error)
{
	char *file = event_control_file(instance, system, name, "enable", error);
	struct strbuf text = { 0 };
	int result = -1;

	if (!file)
		return -1;
	/* "0*" is off, with a trigger waiting to turn it on. */
	if (instance_read(instance, file, &text, error) == 0)
		result = text.text[0] == '1';
	strbuf_free(&text);
	free(file);
	return result;
}

/*
 * The filter in @file; none if it says none, or has the text of an error, as it does
 * after a refused filter.
 */
static int read_filter(struct instance *instance, const char *file, struct strbuf *filter,
		       struct trace_error *error)
{
	struct strbuf text = { 0 };
	int result = -1;

	if (instance_read(instance, file, &text, error) == 0) {
		if (text.length && text.text[text.length - 1] == '\n')
			text.text[--text.length] = '\0';
		result = text.length && strcmp(text.text, "none") != 0 &&
			 !strstr(text.text, "\nparse_error: ") && !strstr(text.text, "\nError: (");
		if (result)
			strbuf_add(filter, text.text, text.length);
		if (filter->failed)
			result = error_set(error, ENOMEM, "out of memory");
	}
	strbuf_free(&text);
	return result;
}

int instance_get_filter(struct instance *instance, const char *system, const char *name,
			struct strbuf *filter, struct trace_error *error)
{
	char *file = event_control_file(instance, system, name, "filter", error);
	int result;

	if (!file)
		return -1;
	result = read_filter(instance, file, filter, error);
	free(file);
	return result;
}

int instance_clear_filter(struct instance *instance, const char *system, const char *name,
			  struct trace_error *error)
{
	char *file = event_control_file(instance, system, name, "filter", error);
	int result;

	if (!file)
		return -1;
	result = instance_write(instance, file, "0", 1, error);
	free(file);
	return result;
}

void event_control_add_fields(struct instance *instance, const char *system, const char *name,
			      struct strbuf *out)
{
	struct strbuf text = { 0 };
	char *file, *next, *line, *end;
	size_t count = 0;

	if (asprintf(&file, "events/%s/%s/format", system, name) < 0)
		return;
	if (instance_read(instance, file, &text, NULL) == 0) {
		for (next = text.text; (line = strsep(&next, "\n"));) {
			if (strncmp(line, "\tfield:", 7) != 0 || !(end = strchr(line, ';')))
				continue;
			*end = '\0';
			/* "type name" or "type name[N]"; "__data_loc type[] name". */
			if (end[-1] == ']' && strrchr(line, '['))
				*strrchr(line, '[') = '\0';
			line = strrchr(line, ' ');
			if (line && strncmp(line + 1, "common_", 7) != 0)
				strbuf_addf(out, "%s%s", count++ ? ", " : "", line + 1);
		}
	}
	strbuf_free(&text);
	free(file);
}

/* The kernel takes less than a page at once and says no more than EINVAL. */
static int check_length(const char *system, const char *name, const char *filter,
			struct trace_error *error)
{
	size_t most = (size_t)sysconf(_SC_PAGESIZE) - 1;

	if (strlen(filter) <= most)
		return 0;
	return error_set(
		error, EINVAL,
		"bad filter for %s:%s: it has %zu bytes, and the kernel takes %zu. Filter for less "
		"in the kernel and for the rest in Lua",
		system, name, strlen(filter), most);
}

/*
 * Kernels take a filter that ends in &&, || or ! (6.18 does), which is a mistake of whoever
 * wrote it. 0, or -1 and an error in the kernel's own layout.
 */
static int check_end(const char *system, const char *name, const char *filter,
		     struct trace_error *error)
{
	size_t end = strlen(filter);

	while (end && (isspace((unsigned char)filter[end - 1]) || filter[end - 1] == '!'))
		end--;
	if (end < 2 ||
	    (strncmp(filter + end - 2, "&&", 2) != 0 && strncmp(filter + end - 2, "||", 2) != 0))
		return 0;
	return error_set(
		error, EINVAL,
		"bad filter for %s:%s: a condition is missing at its end\n  Command: %.*s\n%*s^",
		system, name, (int)end, filter, (int)(11 + end), "");
}

/* Tells about the refusal of @filter for code @code; @old (or NULL) is in place again. */
static int filter_error(struct instance *instance, const char *file, const char *system,
			const char *name, const char *filter, int code, struct trace_error *error)
{
	struct strbuf says = { 0 }, fields = { 0 };
	int dir_fd = instance_dir_fd(instance);

	/* Before Linux 5.2 there is no error_log, and the filter file itself has the text. */
	if (!kernel_error_add(dir_fd, &says) && !instance_has(instance, "error_log") &&
	    tracefile_read(dir_fd, file, &says) == 0 && !strstr(says.text, "\nparse_error: "))
		strbuf_reset(&says);
	if (!says.length || says.failed) {
		instance_write_error(instance, file, filter, strlen(filter), code, error);
	} else {
		if (strstr(says.text, "Field not found"))
			event_control_add_fields(instance, system, name, &fields);
		while (says.length && says.text[says.length - 1] == '\n')
			says.text[--says.length] = '\0';
		error_set(error, EINVAL,
			  "cannot set the filter of %s:%s (%s/%s): the kernel says:\n%s%s%s%s",
			  system, name, instance_dir(instance), file, says.text,
			  fields.length ? "\nIts fields are: " : "",
			  fields.length && !fields.failed ? fields.text : "",
			  fields.length ? "; and common_pid, CPU, COMM" : "");
	}
	strbuf_free(&says);
	strbuf_free(&fields);
	return -1;
}

char *event_control_line(const char *text)
{
	char *copy = strdup(text), quote = '\0';

	for (char *at = copy; at && *at; at++) {
		if (quote)
			quote = *at == quote ? '\0' : quote;
		else if (*at == '"' || *at == '\'')
			quote = *at;
		else if (isspace((unsigned char)*at))
			*at = ' ';
	}
	return copy;
}

int instance_set_filter(struct instance *instance, const char *system, const char *name,
			const char *text, struct trace_error *error)
{
	int dir_fd = instance_dir_fd(instance), had, err;
	char *file = event_control_file(instance, system, name, "filter", error), *filter;
	struct strbuf old = { 0 };
	int result = -1;

	if (!file)
		return -1;
	filter = event_control_line(text);
	if (!filter) {
		error_set(error, ENOMEM, "out of memory");
		goto out;
	}
	if (check_length(system, name, filter, error) < 0 ||
	    check_end(system, name, filter, error) < 0)
		goto out;
	had = read_filter(instance, file, &old, error);
	if (had < 0)
		goto out;
	kernel_error_clear(dir_fd);
	err = tracefile_write_all(dir_fd, file, 0, filter, strlen(filter));
	if (!err) {
		result = 0;
		goto out;
	}
	filter_error(instance, file, system, name, filter, -err, error);
	if (had)
		(void)tracefile_write_all(dir_fd, file, 0, old.text, old.length);
	else
		(void)tracefile_write_all(dir_fd, file, 0, "0", 1);
out:
	strbuf_free(&old);
	free(filter);
	free(file);
	return result;
}

int instance_append_filter(struct instance *instance, const char *system, const char *name,
			   const char *filter, bool either, struct trace_error *error)
{
	struct strbuf old = { 0 }, both = { 0 };
	int had = instance_get_filter(instance, system, name, &old, error), result = -1;

	if (had > 0) {
		/* A condition that is missing would take the bracket for its own. */
		if (check_end(system, name, filter, error) == 0) {
			strbuf_addf(&both, "(%s) %s (%s)", old.text, either ? "||" : "&&", filter);
			result = both.failed ? error_set(error, ENOMEM, "out of memory") :
					       instance_set_filter(instance, system, name,
								   both.text, error);
		}
	} else if (had == 0) {
		result = instance_set_filter(instance, system, name, filter, error);
	}
	strbuf_free(&old);
	strbuf_free(&both);
	return result;
}
