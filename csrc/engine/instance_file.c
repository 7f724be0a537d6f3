/* SPDX-License-Identifier: MIT */
#include "instance.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holders.h"
#include "kernel_error.h"
#include "tracedir.h"
#include "tracefile.h"

static int check_file(const char *file, struct trace_error *error)
{
	if (tracefile_is_below(file))
		return 0;
	return error_set(error, EINVAL,
			 "bad file name \"%s\": it is a path below the instance's directory, "
			 "without a leading / and without ..",
			 file);
}

/* Both directions meet the same obstacles; @what is "read" or "write ... to". */
static int file_error(struct instance *instance, const char *what, const char *file, int code,
		      struct trace_error *error)
{
	struct strbuf who = { 0 };
	char *path;

	if (code == ENOMEM)
		return error_set(error, code, "cannot %s %s/%s: out of memory", what,
				 instance_dir(instance), file);
	if (code == ENOENT && !tracefile_exists(instance_dir_fd(instance), "tracing_on"))
		return error_set(error, code,
				 "cannot %s %s: the instance %s is gone, someone has removed it",
				 what, file, instance_dir(instance));
	if (code == ENOENT)
		return error_set(error, code, "cannot %s %s/%s: this kernel has no such file here",
				 what, instance_dir(instance), file);
	if (code == EBUSY) {
		holders_add(&who, instance_name(instance));
		error_set(error, code, "cannot %s %s/%s: it is busy%s%s", what,
			  instance_dir(instance), file, who.length ? ". Open are: " : "",
			  who.length && !who.failed ? who.text : "");
		strbuf_free(&who);
		return -1;
	}
	if (asprintf(&path, "%s/%s", instance_dir(instance), file) < 0)
		return error_set(error, ENOMEM, "out of memory");
	tracing_dir_refusal(error, code, what, path);
	free(path);
	return -1;
}

int instance_read_error(struct instance *instance, const char *file, int code,
			struct trace_error *error)
{
	return file_error(instance, "read", file, code, error);
}

int instance_write_error(struct instance *instance, const char *file, const char *text,
			 size_t length, int code, struct trace_error *error)
{
	struct strbuf what = { 0 }, says = { 0 };
	int dir_fd = instance_dir_fd(instance);

	if (length) {
		strbuf_add_string(&what, "write ");
		kernel_error_quote(&what, text, length);
		strbuf_add_string(&what, " to");
	} else {
		strbuf_add_string(&what, "clear");
	}
	if (what.failed) {
		error_set(error, ENOMEM, "out of memory");
	} else if (kernel_error_covers(file) && kernel_error_add(dir_fd, &says) && !says.failed) {
		/* The errno value of a parse error says nothing: a missing quote is ESRCH. */
		if (code == EPERM || code == ENOENT || code == ESRCH)
			code = EINVAL;
		error_set(error, code, "cannot %s %s/%s: the kernel says:\n%s", what.text,
			  instance_dir(instance), file, says.text);
	} else {
		file_error(instance, what.text, file, code, error);
	}
	strbuf_free(&what);
	strbuf_free(&says);
	return -1;
}

int instance_read(struct instance *instance, const char *file, struct strbuf *out,
		  struct trace_error *error)
{
	int err;

	if (check_file(file, error) < 0)
		return -1;
	err = tracefile_read(instance_dir_fd(instance), file, out);
	return err ? instance_read_error(instance, file, -err, error) : 0;
}

static int write_file(struct instance *instance, const char *file, int flags, const char *text,
		      size_t length, struct trace_error *error)
{
	int dir_fd = instance_dir_fd(instance), err;

	if (check_file(file, error) < 0)
		return -1;
	if (kernel_error_covers(file))
		kernel_error_clear(dir_fd);
	err = tracefile_write_all(dir_fd, file, flags, text, length);
	return err ? instance_write_error(instance, file, text, length, -err, error) : 0;
}

int instance_write(struct instance *instance, const char *file, const char *text, size_t length,
		   struct trace_error *error)
{
	return write_file(instance, file, O_TRUNC, text, length, error);
}

int instance_append(struct instance *instance, const char *file, const char *text, size_t length,
		    struct trace_error *error)
{
	return write_file(instance, file, O_APPEND, text, length, error);
}

bool instance_has(const struct instance *instance, const char *file)
{
	return tracefile_is_below(file) && tracefile_exists(instance_dir_fd(instance), file);
}
