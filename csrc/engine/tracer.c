/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel_error.h"
#include "nearest.h"
#include "tracefile.h"

#define FILE_NAME "current_tracer"

static int read_words(struct instance *instance, const char *file, struct strbuf *words,
		      struct trace_error *error)
{
	if (instance_read(instance, file, words, error) < 0)
		return -1;
	while (words->length && strchr(" \n", words->text[words->length - 1]))
		words->text[--words->length] = '\0';
	return 0;
}

int instance_tracers(struct instance *instance, struct strbuf *names, struct trace_error *error)
{
	return read_words(instance, "available_tracers", names, error);
}

int instance_get_tracer(struct instance *instance, struct strbuf *name, struct trace_error *error)
{
	return read_words(instance, FILE_NAME, name, error);
}

static bool has_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	for (const char *at = words; length && (at = strstr(at, word)); at++) {
		if ((at == words || strchr(" \n", at[-1])) && strchr(" \n", at[length]))
			return true;
	}
	return false;
}

/* Does the top level have a tracer that instances do not? */
static bool only_at_top(struct instance *instance, const char *name)
{
	struct strbuf top = { 0 };
	bool found = false;
	char *path;

	if (asprintf(&path, "%s/available_tracers", instance_tracing_dir(instance)) < 0)
		return false;
	if (tracefile_read(AT_FDCWD, path, &top) == 0)
		found = has_word(top.text, name);
	strbuf_free(&top);
	free(path);
	return found;
}

static int no_such_tracer(struct instance *instance, const char *name, struct trace_error *error)
{
	struct strbuf names = { 0 }, quoted = { 0 }, near = { 0 };

	if (instance_tracers(instance, &names, error) < 0) {
		strbuf_free(&names);
		return -1;
	}
	kernel_error_quote(&quoted, name, strlen(name));
	nearest_add(&near, name, names.text);
	if (has_word(names.text, name))
		error_set(error, EINVAL,
			  "cannot set the tracer %s (%s/" FILE_NAME "): the kernel refuses it here",
			  quoted.text, instance_dir(instance));
	else if (only_at_top(instance, name))
		error_set(error, EINVAL,
			  "no tracer %s in an instance (%s/" FILE_NAME
			  "): this kernel has it at the "
			  "top level only. Instances have: %s",
			  quoted.text, instance_dir(instance), names.text);
	else
		error_set(error, EINVAL,
			  "no tracer %s in this kernel (%s/" FILE_NAME ").%s It has: %s",
			  quoted.text, instance_dir(instance), near.length ? near.text : "",
			  names.text);
	strbuf_free(&names);
	strbuf_free(&quoted);
	strbuf_free(&near);
	return -1;
}

int instance_set_tracer(struct instance *instance, const char *name, struct trace_error *error)
{
	int err;

	if (!*name)
		return no_such_tracer(instance, name, error);
	err = tracefile_write_all(instance_dir_fd(instance), FILE_NAME, 0, name, strlen(name));
	if (!err)
		return 0;
	if (err == -EINVAL)
		return no_such_tracer(instance, name, error);
	if (err == -EBUSY)
		return error_set(error, EBUSY,
				 "cannot set the tracer \"%s\" (%s/" FILE_NAME "): the buffer is "
				 "being read, by a session or through trace_pipe, and the kernel "
				 "then keeps the tracer. Set it before",
				 name, instance_dir(instance));
	return instance_write_error(instance, FILE_NAME, name, strlen(name), -err, error);
}
