/* SPDX-License-Identifier: MIT */
#include "dynevent.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "instance.h"
#include "kernel_error.h"
#include "strbuf.h"
#include "tracedir.h"
#include "tracefile.h"

#define FILE_NAME "dynamic_events"

/* The kernel takes a line of less than this (WRITE_BUFSIZE). */
#define COMMAND_LIMIT 4094

struct dynevent {
	char *command;
	char *label; /* "group/event" */
};

struct dynevents {
	char *tracing_dir;
	struct dynevent *list;
	size_t count;
	size_t capacity;
	pid_t creator;
};

struct dynevents *dynevents_create(const char *tracing_dir)
{
	struct dynevents *events = calloc(1, sizeof(*events));

	if (!events)
		return NULL;
	events->creator = getpid();
	events->tracing_dir = strdup(tracing_dir);
	if (!events->tracing_dir) {
		free(events);
		return NULL;
	}
	return events;
}

static void dynevent_clear(struct dynevent *event)
{
	free(event->command);
	free(event->label);
}

void dynevents_free(struct dynevents *events)
{
	if (!events)
		return;
	dynevents_remove(events, NULL);
	for (size_t i = 0; i < events->count; i++)
		dynevent_clear(&events->list[i]);
	free(events->list);
	free(events->tracing_dir);
	free(events);
}

size_t dynevents_count(const struct dynevents *events)
{
	return events->count;
}

const char *dynevents_command(const struct dynevents *events, size_t index)
{
	return events->list[index].command;
}

static int open_tracing_dir(const char *tracing_dir)
{
	int fd;

	do {
		fd = open(tracing_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	} while (fd < 0 && errno == EINTR);
	return fd;
}

void dynevents_name(const struct dynevents *events, char name[OWN_NAME_SIZE])
{
	/* Of the process, as the names are: all of its threads count on. */
	static atomic_uint last;
	char path[4096];

	do {
		stale_own_identifier(name, atomic_fetch_add(&last, 1) + 1);
		/* The same process has counted from 1 before if it has replaced its program. */
		snprintf(path, sizeof(path), "%s/events/%s", events->tracing_dir, name);
	} while (tracefile_exists(AT_FDCWD, path));
}

/* ------------------------------------------------------------------------- */
/* Names in commands                                                          */
/* ------------------------------------------------------------------------- */

/*
 * The name in a command or in a line of dynamic_events: "p:group/event place", "r16:...",
 * "s:event fields", and "s:synthetic/event<tab>fields". False when the line has none.
 */
static bool command_label(const char *line, char *label, size_t size)
{
	const char *at = line, *slash, *group = "";
	size_t length;

	if (!isalpha((unsigned char)*at++))
		return false;
	at += strspn(at, "0123456789");
	if (*at++ != ':')
		return false;
	length = strcspn(at, " \t\n");
	slash = memchr(at, '/', length);
	if (!length || at[length - 1] == '/' || slash == at)
		return false;
	if (!slash) {
		if (*line != 's')
			return false;
		group = "synthetic/";
	}
	return (size_t)snprintf(label, size, "%s%.*s", group, (int)length, at) < size;
}

/* Asks about the group's name, then about the event's. */
static bool label_is(const char *label, bool (*question)(const char *name))
{
	const char *slash = strchr(label, '/');
	char group[OWN_NAME_SIZE];

	if (!slash)
		return false;
	snprintf(group, sizeof(group), "%.*s", (int)(slash - label), label);
	return question(group) || question(slash + 1);
}

/* ------------------------------------------------------------------------- */
/* Adding                                                                     */
/* ------------------------------------------------------------------------- */

static int check_command(const char *command, char *label, size_t size, struct trace_error *error)
{
	const char *wrong = NULL;

	/* The kernel takes '#' for the start of a comment, wherever it stands. */
	if (strchr(command, '\n'))
		wrong = "has more than one line";
	else if (strchr(command, '#'))
		wrong = "has a '#', which begins a comment for the kernel";
	else if (strlen(command) > COMMAND_LIMIT)
		wrong = "is longer than the 4094 bytes that the kernel takes";
	else if (!command_label(command, label, size))
		wrong = "does not name a group and an event";
	else if (!label_is(label, stale_is_our_identifier))
		wrong = "has a name that does not say whose it is";
	if (!wrong)
		return 0;
	return error_set(error, EINVAL, "bad command for %s: it %s: %.1500s", FILE_NAME, wrong,
			 command);
}

static int add_error(const struct dynevents *events, int dir_fd, int code, const char *command,
		     const struct strbuf *before, struct trace_error *error)
{
	struct strbuf says = { 0 };
	char *start, *what;

	/* The kernel makes blanks of the first word's end on. */
	start = strndup(command, strcspn(command, " \t"));
	if (start && kernel_error_add_new(dir_fd, before, start, &says) && !says.failed) {
		error_set(error, code, "cannot write to %s/%s: the kernel says:\n%s",
			  events->tracing_dir, FILE_NAME, says.text);
	} else if (code == ENOENT && !tracefile_exists(dir_fd, FILE_NAME)) {
		error_set(error, code,
			  "no dynamic events in this kernel: it has no %s/%s, as it is built "
			  "without CONFIG_KPROBE_EVENTS, CONFIG_UPROBE_EVENTS and "
			  "CONFIG_SYNTH_EVENTS",
			  events->tracing_dir, FILE_NAME);
	} else if (asprintf(&what, "write \"%.1000s\" to", command) < 0) {
		error_set(error, ENOMEM, "out of memory");
	} else {
		char path[4096];

		snprintf(path, sizeof(path), "%s/%s", events->tracing_dir, FILE_NAME);
		tracing_dir_refusal(error, code, what, path);
		free(what);
	}
	free(start);
	strbuf_free(&says);
	return -1;
}

/* Room for one more, before anything is made that would have to be noted. */
static bool reserve(struct dynevents *events)
{
	size_t capacity = events->capacity ? 2 * events->capacity : 8;
	struct dynevent *list;

	if (events->count < events->capacity)
		return true;
	list = realloc(events->list, capacity * sizeof(*list));
	if (!list)
		return false;
	events->list = list;
	events->capacity = capacity;
	return true;
}

int dynevents_add(struct dynevents *events, const char *command, struct trace_error *error)
{
	struct dynevent *event;
	struct strbuf before = { 0 };
	char label[256];
	int dir_fd, err;

	if (check_command(command, label, sizeof(label), error) < 0)
		return -1;
	if (events->creator != getpid())
		return error_set(error, EPERM,
				 "cannot make a dynamic event: this process is a child of the one "
				 "whose session it is");
	if (!reserve(events))
		return error_set(error, ENOMEM, "out of memory");
	event = &events->list[events->count];
	event->command = strdup(command);
	event->label = strdup(label);
	if (!event->command || !event->label) {
		dynevent_clear(event);
		return error_set(error, ENOMEM, "out of memory");
	}
	dir_fd = open_tracing_dir(events->tracing_dir);
	if (dir_fd < 0) {
		err = errno;
		dynevent_clear(event);
		return tracing_dir_refusal(error, err, "open the tracing directory",
					   events->tracing_dir);
	}
	if (tracefile_read(dir_fd, "error_log", &before) != 0)
		strbuf_reset(&before);
	/* Never O_TRUNC here: it removes everybody's events. */
	err = tracefile_write_all(dir_fd, FILE_NAME, O_APPEND, command, strlen(command));
	if (err) {
		add_error(events, dir_fd, -err, command, &before, error);
		dynevent_clear(event);
	} else {
		events->count++;
	}
	close(dir_fd);
	strbuf_free(&before);
	return err ? -1 : 0;
}

/* ------------------------------------------------------------------------- */
/* Removing                                                                   */
/* ------------------------------------------------------------------------- */

/* 0, also when it is gone already, or a negative errno value. */
static int remove_label(int dir_fd, const char *label)
{
	char command[300];
	int err;

	snprintf(command, sizeof(command), "-:%s", label);
	err = tracefile_write_all(dir_fd, FILE_NAME, O_APPEND, command, strlen(command));
	return err == -ENOENT ? 0 : err;
}

/* Where an event is turned on: names of instances, "the top level" for the one without. */
static void add_users(struct strbuf *out, const char *tracing_dir, int dir_fd, const char *label)
{
	struct strbuf state = { 0 };
	char file[600], **names;

	snprintf(file, sizeof(file), "events/%s/enable", label);
	if (tracefile_read(dir_fd, file, &state) == 0 && state.text[0] == '1')
		strbuf_add_string(out, "the top level");
	if (instance_list(tracing_dir, &names, NULL) == 0) {
		for (size_t i = 0; names[i]; i++) {
			strbuf_reset(&state);
			snprintf(file, sizeof(file), "instances/%.200s/events/%s/enable", names[i],
				 label);
			if (tracefile_read(dir_fd, file, &state) == 0 && state.text[0] == '1')
				strbuf_addf(out, "%sthe instance %s", out->length ? ", " : "",
					    names[i]);
		}
		free(names);
	}
	strbuf_free(&state);
}

static int remove_error(const struct dynevents *events, int dir_fd, const char *label, int code,
			struct trace_error *error)
{
	struct strbuf users = { 0 };
	char path[4096];

	if (code != EBUSY) {
		snprintf(path, sizeof(path), "%s/%s", events->tracing_dir, FILE_NAME);
		return tracing_dir_refusal(error, code, "remove a dynamic event with", path);
	}
	add_users(&users, events->tracing_dir, dir_fd, label);
	error_set(error, code,
		  "cannot remove the dynamic event %s: it is in use: %s. End that, then: "
		  "echo '-:%s' >> %s/%s",
		  label,
		  users.length && !users.failed ? users.text :
						  "by a trigger, perf or another event",
		  label, events->tracing_dir, FILE_NAME);
	strbuf_free(&users);
	return -1;
}

/* The last one first: an event probe goes before what it is attached to. */
static int remove_from_end(struct dynevents *events, int dir_fd, size_t left)
{
	int err;

	while (events->count > left) {
		err = remove_label(dir_fd, events->list[events->count - 1].label);
		if (err)
			return err;
		dynevent_clear(&events->list[--events->count]);
	}
	return 0;
}

static int remove_until(struct dynevents *events, size_t left, struct trace_error *error)
{
	int dir_fd, err = 0;

	if (events->count <= left || events->creator != getpid())
		return 0;
	dir_fd = open_tracing_dir(events->tracing_dir);
	if (dir_fd < 0)
		return tracing_dir_refusal(error, errno, "open the tracing directory",
					   events->tracing_dir);
	/* Others may use it for a moment, as who lists all of them does. */
	for (long ms = 1; ms <= 128; ms *= 2) {
		err = remove_from_end(events, dir_fd, left);
		if (err != -EBUSY)
			break;
		clock_sleep_ms(ms);
	}
	if (err)
		remove_error(events, dir_fd, events->list[events->count - 1].label, -err, error);
	close(dir_fd);
	return err ? -1 : 0;
}

int dynevents_remove(struct dynevents *events, struct trace_error *error)
{
	return remove_until(events, 0, error);
}

int dynevents_drop(struct dynevents *events, struct trace_error *error)
{
	if (!events->count)
		return error_set(error, ENOENT, "there is no dynamic event to remove");
	return remove_until(events, events->count - 1, error);
}

/* The lines of @text as a list of labels of dead processes, the last one first. */
static void add_dead(struct strbuf *labels, const char *text)
{
	const char *line = text + strlen(text);
	char label[256];

	while (line > text) {
		line--;
		while (line > text && line[-1] != '\n')
			line--;
		if (command_label(line, label, sizeof(label)) &&
		    label_is(label, stale_is_dead_identifier))
			strbuf_add(labels, label, strlen(label) + 1);
	}
}

unsigned int dynevents_remove_stale(const char *tracing_dir)
{
	struct strbuf text = { 0 }, labels = { 0 };
	unsigned int removed = 0;
	int dir_fd;

	dir_fd = open_tracing_dir(tracing_dir);
	if (dir_fd < 0)
		return 0;
	if (tracefile_read(dir_fd, FILE_NAME, &text) == 0)
		add_dead(&labels, text.text);
	if (!labels.failed) {
		for (size_t at = 0; at < labels.length; at += strlen(labels.text + at) + 1) {
			if (remove_label(dir_fd, labels.text + at) == 0)
				removed++;
		}
	}
	close(dir_fd);
	strbuf_free(&text);
	strbuf_free(&labels);
	return removed;
}
