/* SPDX-License-Identifier: MIT */
#include "kernel_error.h"

#include <ctype.h>
#include <fcntl.h>
#include <string.h>

#include "tracefile.h"

#define ERROR_LOG "error_log"

bool kernel_error_covers(const char *file)
{
	const char *name = strrchr(file, '/');
	size_t length;

	name = name ? name + 1 : file;
	length = strlen(name);
	return strcmp(name, "filter") == 0 || strcmp(name, "trigger") == 0 ||
	       (length > 7 && strcmp(name + length - 7, "_events") == 0);
}

void kernel_error_clear(int dir_fd)
{
	/* Kernels before 5.2 have none; what cannot be cleared is not shown either way. */
	(void)tracefile_write(dir_fd, ERROR_LOG, O_TRUNC, NULL, 0, NULL);
}

/* The length of "[   17.233482] " at the start of an entry, 0 on its other lines. */
static size_t stamp_length(const char *line)
{
	const char *at = line;

	if (*at++ != '[')
		return 0;
	at += strspn(at, " ");
	if (!isdigit((unsigned char)*at))
		return 0;
	at += strspn(at, "0123456789.");
	return at[0] == ']' && at[1] == ' ' ? (size_t)(at + 2 - line) : 0;
}

bool kernel_error_add(int dir_fd, struct strbuf *out)
{
	struct strbuf log = { 0 };
	const char *line, *end;
	bool any = false;

	if (tracefile_read(dir_fd, ERROR_LOG, &log) != 0) {
		strbuf_free(&log);
		return false;
	}
	for (line = log.text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		line += stamp_length(line);
		if (any)
			strbuf_add_char(out, '\n');
		strbuf_add(out, line, (size_t)(end - line));
		any = true;
	}
	strbuf_free(&log);
	return any;
}

/* The end of the entry that begins at @entry: where the next one begins, or the log's end. */
static const char *entry_end(const char *entry)
{
	const char *line = entry;

	do {
		line = strchrnul(line, '\n');
		line += *line != '\0';
	} while (*line && !stamp_length(line));
	return line;
}

static bool is_about(const char *entry, const char *end, const char *start)
{
	static const char label[] = "\n  Command: ";
	const char *command = memmem(entry, (size_t)(end - entry), label, sizeof(label) - 1);
	size_t length = strlen(start);

	if (!command)
		return false;
	command += sizeof(label) - 1;
	return (size_t)(end - command) >= length && memcmp(command, start, length) == 0;
}

bool kernel_error_add_new(int dir_fd, const struct strbuf *before, const char *start,
			  struct strbuf *out)
{
	struct strbuf log = { 0 };
	const char *entry, *end, *text;
	bool any = false;

	if (tracefile_read(dir_fd, ERROR_LOG, &log) != 0) {
		strbuf_free(&log);
		return false;
	}
	for (entry = log.text; *entry; entry = end) {
		end = entry_end(entry);
		if (!is_about(entry, end, start) ||
		    (before->length &&
		     memmem(before->text, before->length, entry, (size_t)(end - entry))))
			continue;
		text = entry + stamp_length(entry);
		if (any)
			strbuf_add_char(out, '\n');
		strbuf_add(out, text, (size_t)(end - text) - (end[-1] == '\n'));
		any = true;
	}
	strbuf_free(&log);
	return any;
}

void kernel_error_quote(struct strbuf *out, const char *text, size_t length)
{
	const size_t limit = 200;
	unsigned char c;

	strbuf_add_char(out, '"');
	for (size_t i = 0; i < length && i < limit; i++) {
		c = (unsigned char)text[i];
		if (c == '\n')
			strbuf_add_string(out, "\\n");
		else if (c == '\t')
			strbuf_add_string(out, "\\t");
		else if (c < 0x20 || c == 0x7f)
			strbuf_addf(out, "\\x%02x", c);
		else
			strbuf_add_char(out, (char)c);
	}
	strbuf_add_string(out, length > limit ? "...\"" : "\"");
}
