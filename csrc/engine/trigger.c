/* SPDX-License-Identifier: MIT */
#include "trigger.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event_control.h"
#include "kernel_error.h"
#include "nearest.h"
#include "tracefile.h"

/* ------------------------------------------------------------------------- */
/* The text of triggers                                                       */
/* ------------------------------------------------------------------------- */

static size_t word_length(const char *text)
{
	return strcspn(text, ": \t\n");
}

static bool starts_with(const char *text, const char *word)
{
	return word_length(text) == strlen(word) && strncmp(text, word, strlen(word)) == 0;
}

/* The commands that name another event: COMMAND:SYSTEM:EVENT. */
static bool names_event(const char *text)
{
	return starts_with(text, "enable_event") || starts_with(text, "disable_event") ||
	       starts_with(text, "enable_hist") || starts_with(text, "disable_hist");
}

/*
 * The length of what tells a trigger from the others of its event. The kernel has one of each
 * kind, or one for each event that it names; histograms it compares itself.
 */
static size_t identity(const char *text)
{
	size_t length = word_length(text);

	if (names_event(text)) {
		for (int part = 0; part < 2 && text[length] == ':'; part++)
			length += 1 + word_length(text + length + 1);
	}
	return length;
}

static bool same_trigger(const char *a, const char *b)
{
	return identity(a) == identity(b) && strncmp(a, b, identity(a)) == 0;
}

/* The kernel's list tells behind a histogram whether it counts: "... [active]". */
static size_t listed_length(const char *line, size_t length)
{
	static const char *const states[] = { " [active]", " [paused]", " [disabled]" };

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		size_t state = strlen(states[i]);

		if (length > state && strncmp(line + length - state, states[i], state) == 0)
			return length - state;
	}
	return length;
}

/* ------------------------------------------------------------------------- */
/* Files                                                                      */
/* ------------------------------------------------------------------------- */

/* Adds the triggers in @file, a line each and without a last newline. Negative errno or 0. */
static int read_triggers(int dir_fd, const char *file, struct strbuf *lines)
{
	struct strbuf text = { 0 };
	const char *line, *end;
	int err = tracefile_read(dir_fd, file, &text);

	for (line = text.text; !err && *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		/* Where there is none a comment names the commands. */
		if (*line == '#' || line == end)
			continue;
		if (lines->length)
			strbuf_add_char(lines, '\n');
		strbuf_add(lines, line, (size_t)(end - line));
	}
	strbuf_add(lines, "", 0);
	if (!err && lines->failed)
		err = -ENOMEM;
	strbuf_free(&text);
	return err;
}

static unsigned int count_lines(const struct strbuf *lines)
{
	unsigned int count = lines->length ? 1 : 0;

	for (size_t i = 0; i < lines->length; i++)
		count += lines->text[i] == '\n';
	return count;
}

static int write_removal(int dir_fd, const char *file, const char *text, size_t length)
{
	struct strbuf command = { 0 };
	int err;

	strbuf_add_char(&command, '!');
	strbuf_add(&command, text, length);
	err = command.failed ?
		      -ENOMEM :
		      tracefile_write_all(dir_fd, file, O_APPEND, command.text, command.length);
	strbuf_free(&command);
	return err;
}

/*
 * Removes the triggers in @file, the newest first as they may rest on each other. Returns how
 * many are left. Not all histograms can be removed by the line that the kernel shows: it sorts
 * by "lat.log2" there, and does not understand that (all kernels), or names the CPU twice (from 6.16 on).
 * O_TRUNC removes all that nobody else's variables rest on.
 */
static unsigned int clear_file(int dir_fd, const char *file)
{
	struct strbuf lines = { 0 };
	size_t end, start;
	unsigned int left = 0;

	if (read_triggers(dir_fd, file, &lines) == 0 && strstr(lines.text, "hist:"))
		(void)tracefile_write(dir_fd, file, O_TRUNC, NULL, 0, NULL);
	strbuf_reset(&lines);
	if (read_triggers(dir_fd, file, &lines) == 0 && lines.length) {
		for (end = lines.length;; end = start - 1) {
			for (start = end; start > 0 && lines.text[start - 1] != '\n';)
				start--;
			(void)write_removal(dir_fd, file, lines.text + start,
					    listed_length(lines.text + start, end - start));
			if (!start)
				break;
		}
		strbuf_reset(&lines);
		if (read_triggers(dir_fd, file, &lines) == 0)
			left = count_lines(&lines);
	}
	strbuf_free(&lines);
	return left;
}

static unsigned int sweep_system(int dir_fd, const char *system)
{
	unsigned int left = 0;
	char *dir, *file, **names;

	if (asprintf(&dir, "events/%s", system) < 0)
		return 0;
	if (tracefile_list(dir_fd, dir, &names) == 0) {
		for (size_t i = 0; names[i]; i++) {
			if (asprintf(&file, "%s/%s/trigger", dir, names[i]) < 0)
				continue;
			left += clear_file(dir_fd, file);
			free(file);
		}
		free(names);
	}
	free(dir);
	return left;
}

void triggers_sweep(int dir_fd)
{
	unsigned int left, before = UINT_MAX;
	char **systems;

	/* A histogram whose variables others use goes when those have gone. */
	for (;; before = left) {
		left = 0;
		if (tracefile_list(dir_fd, "events", &systems) != 0)
			return;
		for (size_t i = 0; systems[i]; i++)
			left += sweep_system(dir_fd, systems[i]);
		free(systems);
		if (!left || left >= before)
			return;
	}
}

/* ------------------------------------------------------------------------- */
/* One event                                                                  */
/* ------------------------------------------------------------------------- */

int instance_triggers(struct instance *instance, const char *system, const char *name,
		      struct strbuf *lines, struct trace_error *error)
{
	char *file = event_control_file(instance, system, name, "trigger", error);
	int err;

	if (!file)
		return -1;
	err = read_triggers(instance_dir_fd(instance), file, lines);
	if (err)
		instance_read_error(instance, file, -err, error);
	free(file);
	return err ? -1 : 0;
}

/* The commands that the file of an event without a trigger names in its comment. */
static bool add_commands(int dir_fd, const char *file, struct strbuf *commands)
{
	static const char title[] = "# Available triggers:\n#";
	struct strbuf text = { 0 };
	bool found = false;
	const char *list;

	if (tracefile_read(dir_fd, file, &text) == 0 &&
	    strncmp(text.text, title, sizeof(title) - 1) == 0) {
		list = text.text + sizeof(title) - 1;
		list += strspn(list, " ");
		strbuf_add(commands, list, strcspn(list, "\n"));
		found = true;
	}
	strbuf_free(&text);
	return found;
}

int instance_trigger_commands(struct instance *instance, struct strbuf *commands,
			      struct trace_error *error)
{
	int dir_fd = instance_dir_fd(instance), err;
	char **systems, **names, *path;
	bool found = false;

	err = tracefile_list(dir_fd, "events", &systems);
	if (err)
		return instance_read_error(instance, "events", -err, error);
	for (size_t i = 0; systems[i] && !found; i++) {
		if (asprintf(&path, "events/%s", systems[i]) < 0)
			break;
		err = tracefile_list(dir_fd, path, &names);
		free(path);
		if (err)
			continue;
		for (size_t k = 0; names[k] && !found; k++) {
			if (asprintf(&path, "events/%s/%s/trigger", systems[i], names[k]) < 0)
				break;
			found = add_commands(dir_fd, path, commands);
			free(path);
		}
		free(names);
	}
	free(systems);
	if (!found || commands->failed)
		return error_set(error, EPROTO, "%s/events: no trigger file names the commands",
				 instance_dir(instance));
	return 0;
}

/* What is wrong that the kernel calls by the same EINVAL, from the text alone. */
static void add_reason(struct instance *instance, const char *text, struct strbuf *why)
{
	struct strbuf commands = { 0 };
	size_t length = word_length(text);
	char *word = strndup(text, length), *target;

	if (word && instance_trigger_commands(instance, &commands, NULL) == 0) {
		char *at = strstr(commands.text, word);
		bool is_known = false;

		for (; length && at && !is_known; at = strstr(at + 1, word))
			is_known = (at == commands.text || at[-1] == ' ') &&
				   strchr(" ", at[length]);
		if (!is_known) {
			strbuf_addf(why, "this kernel has no trigger command \"%s\".", word);
			nearest_add(why, word, commands.text);
			strbuf_addf(why, " It has: %s", commands.text);
		}
	}
	if (!why->length && names_event(text)) {
		const char *system = text + word_length(text);
		size_t named = identity(text) - word_length(text);

		system += *system == ':';
		named -= named > 0;
		if (asprintf(&target, "events/%.*s", (int)named, system) >= 0) {
			char *colon = strchr(target, ':');

			if (!colon)
				strbuf_addf(why, "%s wants an event: %s:SYSTEM:EVENT[:COUNT]",
					    word ? word : "it", word ? word : "COMMAND");
			else
				*colon = '/';
			if (colon && !instance_has(instance, target))
				strbuf_addf(why, "there is no event %.*s", (int)named, system);
			free(target);
		}
	}
	if (!why->length)
		strbuf_add_string(why, "the form is COMMAND[:ARGUMENTS][:COUNT] [if FILTER]");
	strbuf_free(&commands);
	free(word);
}

static int refused(struct instance *instance, const char *file, const char *system,
		   const char *name, const char *text, int code, struct trace_error *error)
{
	struct strbuf says = { 0 }, quoted = { 0 }, extra = { 0 };
	int dir_fd = instance_dir_fd(instance);

	kernel_error_quote(&quoted, text, strlen(text));
	if (kernel_error_add(dir_fd, &says)) {
		if (code == EPERM || code == ENOENT || code == ESRCH)
			code = EINVAL;
		if (strstr(says.text, "Field not found") || strstr(says.text, "find field")) {
			strbuf_add_string(&extra, "\nIts fields are: ");
			event_control_add_fields(instance, system, name, &extra);
		}
		error_set(error, code,
			  "cannot set the trigger %s of %s:%s (%s/%s): the kernel says:\n%s%s",
			  quoted.text, system, name, instance_dir(instance), file, says.text,
			  extra.length && !extra.failed ? extra.text : "");
	} else if (code == EEXIST) {
		(void)read_triggers(dir_fd, file, &extra);
		error_set(error, code,
			  "cannot set the trigger %s of %s:%s (%s/%s): the event has one of this "
			  "kind; remove it first. It has:\n%s",
			  quoted.text, system, name, instance_dir(instance), file,
			  extra.failed ? "" : extra.text);
	} else if (code == EINVAL) {
		add_reason(instance, text, &extra);
		error_set(error, code, "cannot set the trigger %s of %s:%s (%s/%s): %s",
			  quoted.text, system, name, instance_dir(instance), file,
			  extra.failed ? strerror(code) : extra.text);
	} else {
		instance_write_error(instance, file, text, strlen(text), code, error);
	}
	strbuf_free(&says);
	strbuf_free(&quoted);
	strbuf_free(&extra);
	return -1;
}

static int check_text(const char *system, const char *name, const char *text,
		      struct trace_error *error)
{
	size_t most = (size_t)sysconf(_SC_PAGESIZE) - 1;

	if (!*text)
		return error_set(error, EINVAL,
				 "bad trigger for %s:%s: it is empty; triggers are removed by "
				 "remove_trigger and clear_triggers",
				 system, name);
	if (*text == '!')
		return error_set(error, EINVAL,
				 "bad trigger for %s:%s: \"!\" would remove it; remove_trigger "
				 "does that",
				 system, name);
	if (strlen(text) > most)
		return error_set(error, EINVAL,
				 "bad trigger for %s:%s: it has %zu bytes, and the kernel takes "
				 "%zu",
				 system, name, strlen(text), most);
	return 0;
}

/* A snapshot takes the buffer away from who reads it. */
static int check_snapshot(struct instance *instance, const char *text, struct trace_error *error)
{
	if (!starts_with(text, "snapshot") &&
	    !(starts_with(text, "hist") && strstr(text, "snapshot(")))
		return 0;
	return instance_check_unread(instance, "have a trigger take snapshots", error);
}

static const char *without_blanks(const char *text)
{
	return text + strspn(text, " \t\n\v\f\r");
}

int instance_set_trigger(struct instance *instance, const char *system, const char *name,
			 const char *text, struct trace_error *error)
{
	char *file = event_control_file(instance, system, name, "trigger", error), *line;
	int dir_fd = instance_dir_fd(instance), err, result = -1;

	if (!file)
		return -1;
	line = event_control_line(without_blanks(text));
	if (!line) {
		error_set(error, ENOMEM, "out of memory");
		goto out;
	}
	if (check_text(system, name, line, error) < 0 || check_snapshot(instance, line, error) < 0)
		goto out;
	kernel_error_clear(dir_fd);
	/* Not with O_TRUNC: that removes the event's histograms. */
	err = tracefile_write_all(dir_fd, file, O_APPEND, line, strlen(line));
	if (err)
		refused(instance, file, system, name, line, -err, error);
	else
		result = instance_note_trigger(instance, file, error);
out:
	free(line);
	free(file);
	return result;
}

static int not_there(struct instance *instance, const char *file, const char *system,
		     const char *name, const char *text, const struct strbuf *lines,
		     struct trace_error *error)
{
	struct strbuf quoted = { 0 };

	kernel_error_quote(&quoted, text, strlen(text));
	error_set(error, ENOENT, "%s:%s has no trigger %s (%s/%s). It has%s%s", system, name,
		  quoted.failed ? "" : quoted.text, instance_dir(instance), file,
		  lines->length ? ":\n" : " none", lines->length ? lines->text : "");
	strbuf_free(&quoted);
	return -1;
}

/* Is one like @text in the list? Histograms the kernel compares itself. */
static bool is_listed(const struct strbuf *lines, const char *text)
{
	const char *line, *end;

	for (line = lines->text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		if (same_trigger(line, text))
			return true;
	}
	return false;
}

int instance_remove_trigger(struct instance *instance, const char *system, const char *name,
			    const char *text, struct trace_error *error)
{
	char *file = event_control_file(instance, system, name, "trigger", error);
	int dir_fd = instance_dir_fd(instance), err, result = -1;
	struct strbuf before = { 0 }, after = { 0 };
	char *line = NULL;

	if (!file)
		return -1;
	text = without_blanks(text);
	text = without_blanks(text + (*text == '!'));
	line = event_control_line(text);
	if (!line) {
		error_set(error, ENOMEM, "out of memory");
		goto out;
	}
	if (check_text(system, name, line, error) < 0)
		goto out;
	err = read_triggers(dir_fd, file, &before);
	if (err) {
		instance_read_error(instance, file, -err, error);
		goto out;
	}
	if (!is_listed(&before, line)) {
		not_there(instance, file, system, name, line, &before, error);
		goto out;
	}
	kernel_error_clear(dir_fd);
	err = write_removal(dir_fd, file, line, listed_length(line, strlen(line)));
	if (err == -EBUSY) {
		error_set(error, EBUSY,
			  "cannot remove the trigger \"%s\" of %s:%s (%s/%s): others use its "
			  "variables; remove those first",
			  line, system, name, instance_dir(instance), file);
		goto out;
	}
	if (err) {
		instance_write_error(instance, file, line, strlen(line), -err, error);
		goto out;
	}
	/* What it does not find the kernel passes over in silence. */
	err = read_triggers(dir_fd, file, &after);
	if (err)
		instance_read_error(instance, file, -err, error);
	else if (count_lines(&after) >= count_lines(&before))
		not_there(instance, file, system, name, line, &after, error);
	else
		result = 0;
out:
	strbuf_free(&before);
	strbuf_free(&after);
	free(line);
	free(file);
	return result;
}

int instance_clear_triggers(struct instance *instance, const char *system, const char *name,
			    struct trace_error *error)
{
	char *file = event_control_file(instance, system, name, "trigger", error);
	struct strbuf lines = { 0 };
	int result = 0;

	if (!file)
		return -1;
	if (clear_file(instance_dir_fd(instance), file) > 0 &&
	    read_triggers(instance_dir_fd(instance), file, &lines) == 0 && lines.length)
		result = error_set(error, EBUSY,
				   "cannot remove all triggers of %s:%s (%s/%s): others use the "
				   "variables of what is left:\n%s",
				   system, name, instance_dir(instance), file, lines.text);
	strbuf_free(&lines);
	free(file);
	return result;
}

void triggers_clear_listed(int dir_fd, char *files)
{
	unsigned int left, before = UINT_MAX;

	for (;; before = left) {
		left = 0;
		/* The newest first. */
		for (size_t end = strlen(files); end > 0;) {
			size_t start = end - 1;
			char saved = files[end - 1];

			while (start > 0 && files[start - 1] != '\n')
				start--;
			files[end - 1] = '\0';
			left += clear_file(dir_fd, files + start);
			files[end - 1] = saved;
			end = start;
		}
		if (!left || left >= before)
			return;
	}
}
