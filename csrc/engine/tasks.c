/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static const char *const files[] = {
	[TASKS_EVENT] = "set_event_pid",
	[TASKS_EVENT_NOT] = "set_event_notrace_pid",
	[TASKS_FUNCTION] = "set_ftrace_pid",
	[TASKS_FUNCTION_NOT] = "set_ftrace_notrace_pid",
};

int instance_set_tasks(struct instance *instance, enum task_list list, const pid_t *pids,
		       size_t count, struct trace_error *error)
{
	struct strbuf text = { 0 };
	int result;

	for (size_t i = 0; i < count; i++) {
		if (pids[i] < 1) {
			strbuf_free(&text);
			return error_set(error, EINVAL, "bad pid %d to trace: pids are 1 or more",
					 (int)pids[i]);
		}
		strbuf_addf(&text, "%s%d", i ? " " : "", (int)pids[i]);
	}
	if (text.failed)
		return error_set(error, ENOMEM, "out of memory");
	result = instance_write(instance, files[list], text.text, text.length, error);
	strbuf_free(&text);
	return result;
}

int instance_get_tasks(struct instance *instance, enum task_list list, struct strbuf *pids,
		       struct trace_error *error)
{
	struct strbuf text = { 0 };
	const char *at;

	if (instance_read(instance, files[list], &text, error) < 0) {
		strbuf_free(&text);
		return -1;
	}
	/* Where there is none some kernels say it in words. */
	for (at = text.text; *at;) {
		size_t digits = 0;

		while (isdigit((unsigned char)at[digits]))
			digits++;
		if (digits) {
			if (pids->length)
				strbuf_add_char(pids, ' ');
			strbuf_add(pids, at, digits);
		}
		at += digits + (at[digits] != '\0');
	}
	strbuf_free(&text);
	return pids->failed ? error_set(error, ENOMEM, "out of memory") : 0;
}

int instance_follow_children(struct instance *instance, enum task_list list, bool follow,
			     struct trace_error *error)
{
	bool events = list == TASKS_EVENT || list == TASKS_EVENT_NOT;

	return instance_set_option(instance, events ? "event-fork" : "function-fork", follow,
				   error);
}
