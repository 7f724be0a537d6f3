/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel_error.h"
#include "nearest.h"
#include "tracefile.h"

int instance_clocks(struct instance *instance, struct strbuf *names, struct strbuf *current,
		    struct trace_error *error)
{
	struct strbuf text = { 0 };
	char *next, *word;
	int result = -1;
	size_t length;

	if (instance_read(instance, "trace_clock", &text, error) < 0)
		goto out;
	for (next = text.text; (word = strsep(&next, " \n"));) {
		length = strlen(word);
		if (!length)
			continue;
		/* The one in use is in brackets. */
		if (word[0] == '[' && word[length - 1] == ']') {
			word[length - 1] = '\0';
			word++;
			if (current)
				strbuf_add_string(current, word);
		}
		strbuf_addf(names, "%s%s", names->length ? " " : "", word);
	}
	if (names->failed || (current && current->failed))
		error_set(error, ENOMEM, "out of memory");
	else if (!names->length || (current && !current->length))
		error_set(error, EPROTO, "%s/trace_clock names no clock", instance_dir(instance));
	else
		result = 0;
out:
	strbuf_free(&text);
	return result;
}

int instance_set_clock(struct instance *instance, const char *name, struct trace_error *error)
{
	struct strbuf names = { 0 }, quoted = { 0 }, near = { 0 };
	int err;

	if (instance_check_unread(instance, "set the clock", error) < 0)
		return -1;
	err = tracefile_write_all(instance_dir_fd(instance), "trace_clock", 0, name, strlen(name));
	if (!err && *name)
		return 0;
	if (err && err != -EINVAL)
		return instance_write_error(instance, "trace_clock", name, strlen(name), -err,
					    error);
	if (instance_clocks(instance, &names, NULL, error) < 0) {
		strbuf_free(&names);
		return -1;
	}
	kernel_error_quote(&quoted, name, strlen(name));
	nearest_add(&near, name, names.text);
	error_set(error, EINVAL, "no trace clock %s in this kernel (%s/trace_clock).%s It has: %s",
		  quoted.failed ? "" : quoted.text, instance_dir(instance),
		  near.length ? near.text : "", names.text);
	strbuf_free(&near);
	strbuf_free(&quoted);
	strbuf_free(&names);
	return -1;
}

/* 1 or 0 as the file says, or -1. */
static int read_switch(struct instance *instance, const char *file, struct trace_error *error)
{
	int64_t number = settings_read_number(instance, file, error);

	return number < 0 ? -1 : number != 0;
}

int instance_set_tracing(struct instance *instance, bool on, struct trace_error *error)
{
	return instance_write(instance, "tracing_on", on ? "1" : "0", 1, error);
}

int instance_is_tracing(struct instance *instance, struct trace_error *error)
{
	return read_switch(instance, "tracing_on", error);
}

int instance_options(struct instance *instance, struct strbuf *names, struct trace_error *error)
{
	char **list;
	int err;

	err = tracefile_list(instance_dir_fd(instance), "options", &list);
	if (err)
		return instance_read_error(instance, "options", -err, error);
	for (size_t i = 0; list[i]; i++)
		strbuf_addf(names, "%s%s", i ? " " : "", list[i]);
	free(list);
	strbuf_add(names, "", 0);
	return names->failed ? error_set(error, ENOMEM, "out of memory") : 0;
}

static int no_such_option(struct instance *instance, const char *name, struct trace_error *error)
{
	struct strbuf options = { 0 }, quoted = { 0 }, near = { 0 };

	if (instance_options(instance, &options, error) < 0) {
		strbuf_free(&options);
		return -1;
	}
	kernel_error_quote(&quoted, name, strlen(name));
	nearest_add(&near, name, options.text);
	error_set(error, ENOENT, "no option %s in %s/options.%s There are: %s", quoted.text,
		  instance_dir(instance), near.length ? near.text : "",
		  options.length ? options.text : "none");
	strbuf_free(&quoted);
	strbuf_free(&options);
	strbuf_free(&near);
	return -1;
}

/* The option's file, malloc'd, or NULL and an error. */
static char *option_file(struct instance *instance, const char *name, struct trace_error *error)
{
	char *file;

	if (asprintf(&file, "options/%s", name) < 0) {
		error_set(error, ENOMEM, "out of memory");
		return NULL;
	}
	if (tracefile_is_name(name) && instance_has(instance, file))
		return file;
	free(file);
	no_such_option(instance, name, error);
	return NULL;
}

int instance_set_option(struct instance *instance, const char *name, bool on,
			struct trace_error *error)
{
	char *file = option_file(instance, name, error);
	int result;

	if (!file)
		return -1;
	result = instance_write(instance, file, on ? "1" : "0", 1, error);
	free(file);
	return result;
}

int instance_get_option(struct instance *instance, const char *name, struct trace_error *error)
{
	char *file = option_file(instance, name, error);
	int result;

	if (!file)
		return -1;
	result = read_switch(instance, file, error);
	free(file);
	return result;
}

int instance_clear(struct instance *instance, struct trace_error *error)
{
	if (instance_check_unread(instance, "clear the buffer", error) < 0)
		return -1;
	return instance_write(instance, "trace", NULL, 0, error);
}

static ssize_t write_marker(struct instance *instance, const char *file, const char *bytes,
			    size_t length, struct trace_error *error)
{
	size_t taken = 0;
	int err;

	err = tracefile_write(instance_dir_fd(instance), file, 0, bytes, length, &taken);
	if (!err)
		return (ssize_t)taken;
	if (err == -EBADF)
		return error_set(
			error, EBADF,
			"cannot write to %s/%s: nothing is recorded now, either as tracing is off "
			"(trace_on turns it on) or as the buffer is full and overwrite is off",
			instance_dir(instance), file);
	return instance_write_error(instance, file, bytes, length, -err, error);
}

ssize_t instance_marker(struct instance *instance, const char *text, size_t length,
			struct trace_error *error)
{
	return write_marker(instance, "trace_marker", text, length, error);
}

ssize_t instance_marker_raw(struct instance *instance, const char *bytes, size_t length,
			    struct trace_error *error)
{
	if (length < sizeof(uint32_t))
		return error_set(
			error, EINVAL,
			"bad raw marker of %zu bytes: it begins with a number of 4 bytes, its id",
			length);
	return write_marker(instance, "trace_marker_raw", bytes, length, error);
}
