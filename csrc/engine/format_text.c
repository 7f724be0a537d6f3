/* SPDX-License-Identifier: MIT */
#include "format_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A name of the kernel is a C identifier; these leave room and end hostile ones. */
#define NAME_LENGTH_MAX 256
#define DECLARATION_LENGTH_MAX 1024
#define FORMAT_LENGTH_MAX (1024 * 1024)
#define FIELD_COUNT_MAX 1024
#define RECORD_SIZE_MAX (1024 * 1024)
#define EVENT_ID_MAX 65535 /* common_type has 16 bits */

struct line {
	const char *start;
	size_t length;
};

/* Takes the next line, without its newline, from @text. */
static bool line_next(const char **text, size_t *length, struct line *line)
{
	const char *end;

	if (!*length)
		return false;
	end = memchr(*text, '\n', *length);
	line->start = *text;
	line->length = end ? (size_t)(end - *text) : *length;
	*text += line->length + (end ? 1 : 0);
	*length -= line->length + (end ? 1 : 0);
	return true;
}

/* Cuts @prefix off the line; false when it does not start with it. */
static bool line_skip(struct line *line, const char *prefix)
{
	size_t length = strlen(prefix);

	if (line->length < length || memcmp(line->start, prefix, length))
		return false;
	line->start += length;
	line->length -= length;
	return true;
}

static void line_skip_space(struct line *line)
{
	while (line->length && (*line->start == ' ' || *line->start == '\t')) {
		line->start++;
		line->length--;
	}
}

/* A decimal number of at most @max at the start of the line. */
static bool line_number(struct line *line, uint64_t max, uint64_t *number)
{
	size_t digits = 0;

	*number = 0;
	while (digits < line->length && isdigit((unsigned char)line->start[digits])) {
		*number = *number * 10 + (uint64_t)(line->start[digits] - '0');
		if (*number > max)
			return false;
		digits++;
	}
	line->start += digits;
	line->length -= digits;
	return digits > 0;
}

static bool line_key_number(struct line *line, const char *key, uint64_t max, uint64_t *number)
{
	line_skip_space(line);
	return line_skip(line, key) && line_number(line, max, number) && line_skip(line, ";");
}

/*
 * Takes __attribute__((btf_type_tag("user"))) and its kind out of a declaration: they say
 * nothing about the bytes.
 */
static bool remove_attributes(char *declaration)
{
	char *attribute;

	while ((attribute = strstr(declaration, "__attribute__(("))) {
		const char *end = strstr(attribute, "))");

		if (!end)
			return false;
		/* The tag's own parenthesis may close right before the attribute's. */
		end += strspn(end, ")");
		memmove(attribute, end, strlen(end) + 1);
	}
	return true;
}

/*
 * Where the name stands in "TYPE NAME", "TYPE NAME[COUNT]" or "__data_loc TYPE[] NAME": the
 * last word outside of brackets. False when the text is no declaration.
 */
static bool find_name(const char *text, size_t *start, size_t *length)
{
	bool in_brackets = false, in_word = false;
	unsigned int words = 0;

	for (size_t i = 0; text[i]; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_letter = isalnum(c) || c == '_';

		if (c == '[') {
			if (in_brackets || words < 2)
				return false;
			in_brackets = true;
		} else if (c == ']') {
			if (!in_brackets)
				return false;
			in_brackets = false;
		} else if (is_letter && !in_brackets) {
			if (!in_word) {
				words++;
				*start = i;
			}
			*length = i + 1 - *start;
		} else if (!is_letter && c != ' ' && c != '*' &&
			   !(in_brackets && strchr("+-/()", c))) {
			return false;
		}
		in_word = is_letter && !in_brackets;
	}
	return words >= 2 && !in_brackets;
}

/* "char comm[16]" becomes "comm" and "char[16]", "const char * p" "p" and "const char *". */
static bool split_declaration(const char *text, struct format_line *line)
{
	size_t start = 0, length = 0, end;
	const char *behind;

	if (!find_name(text, &start, &length))
		return false;
	behind = text + start + length;
	end = start;
	while (end && text[end - 1] == ' ')
		end--;
	line->name = strndup(text + start, length);
	line->type = malloc(end + strlen(behind) + 1);
	if (!line->name || !line->type)
		return false;
	memcpy(line->type, text, end);
	strcpy(line->type + end, behind);
	return true;
}

/* "\tfield:DECLARATION;\toffset:N;\tsize:N;\tsigned:N;" */
static bool parse_field(struct line text, struct format_line *line)
{
	char declaration[DECLARATION_LENGTH_MAX + 1];
	const char *semicolon;
	uint64_t offset, size, is_signed = 0;
	size_t length;

	if (!line_skip(&text, "\tfield:") && !line_skip(&text, "\tfield special:"))
		return false;
	semicolon = memchr(text.start, ';', text.length);
	if (!semicolon || semicolon - text.start > DECLARATION_LENGTH_MAX)
		return false;
	length = (size_t)(semicolon - text.start);
	memcpy(declaration, text.start, length);
	declaration[length] = '\0';
	text.start += length + 1;
	text.length -= length + 1;
	if (!line_key_number(&text, "offset:", RECORD_SIZE_MAX, &offset) ||
	    !line_key_number(&text, "size:", RECORD_SIZE_MAX, &size) ||
	    offset + size > RECORD_SIZE_MAX)
		return false;
	line_skip_space(&text);
	/* Kernels before 2.6.32 do not say. */
	if (text.length && !line_key_number(&text, "signed:", 1, &is_signed))
		return false;
	line_skip_space(&text);
	line->offset = (uint32_t)offset;
	line->size = (uint32_t)size;
	line->is_signed = is_signed;
	return !text.length && remove_attributes(declaration) &&
	       split_declaration(declaration, line);
}

/* Takes a line in; its place in the list is there. */
static int add_field(struct format_text *parts, struct line text, unsigned int number,
		     struct trace_error *error)
{
	struct format_line *lines;

	if (parts->count == FIELD_COUNT_MAX)
		return error_set(error, EINVAL, "more than %d fields", FIELD_COUNT_MAX);
	/* Grown by 16 at a time. */
	if (parts->count % 16 == 0) {
		lines = reallocarray(parts->lines, parts->count + 16, sizeof(*lines));
		if (!lines)
			return error_set(error, ENOMEM, "out of memory");
		parts->lines = lines;
	}
	parts->lines[parts->count] = (struct format_line){ 0 };
	if (!parse_field(text, &parts->lines[parts->count++]))
		return error_set(error, EINVAL, "line %u: not a field: \"%.*s\"", number,
				 (int)(text.length > 200 ? 200 : text.length), text.start);
	return 0;
}

static bool name_ok(const char *name, size_t length)
{
	if (!length || length > NAME_LENGTH_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("_-.:@$", name[i]))
			return false;
	return true;
}

/* The fields before the first empty line behind them are those of every event. */
static void mark_common(struct format_text *parts, bool *is_done)
{
	if (*is_done || !parts->count)
		return;
	for (unsigned int i = 0; i < parts->count; i++)
		parts->lines[i].is_common = true;
	*is_done = true;
}

static int format_text_split(struct format_text *parts, const char *text, size_t length,
			     struct trace_error *error)
{
	const char *print_fmt = "";
	size_t print_fmt_length = 0;
	unsigned int number = 0;
	bool has_id = false, has_common = false;
	struct line line;
	uint64_t id = 0;

	while (line_next(&text, &length, &line)) {
		struct line rest = line;

		number++;
		if (line_skip(&rest, "name: ")) {
			if (parts->name || !name_ok(rest.start, rest.length))
				return error_set(error, EINVAL, "line %u: not the name of an event",
						 number);
			parts->name = strndup(rest.start, rest.length);
			if (!parts->name)
				return error_set(error, ENOMEM, "out of memory");
		} else if (line_skip(&rest, "ID: ")) {
			if (has_id || !line_number(&rest, EVENT_ID_MAX, &id) || rest.length)
				return error_set(error, EINVAL,
						 "line %u: not an event id (0 to %d)", number,
						 EVENT_ID_MAX);
			has_id = true;
		} else if (line_skip(&rest, "print fmt:")) {
			/* The last thing in the file, newlines and all. */
			line_skip_space(&rest);
			print_fmt = rest.start;
			print_fmt_length = rest.length + (length ? length + 1 : 0);
			break;
		} else if (line_skip(&rest, "\tfield")) {
			if (add_field(parts, line, number, error))
				return -1;
		} else if (!line.length) {
			mark_common(parts, &has_common);
		} else if (!line_skip(&rest, "format:") || rest.length) {
			return error_set(error, EINVAL, "line %u: \"%.*s\" is not understood",
					 number, (int)(line.length > 200 ? 200 : line.length),
					 line.start);
		}
	}
	if (!parts->name || !has_id)
		return error_set(error, EINVAL, "no \"%s\" line", parts->name ? "ID: " : "name: ");
	while (print_fmt_length && print_fmt[print_fmt_length - 1] == '\n')
		print_fmt_length--;
	parts->id = (int)id;
	parts->print_fmt = strndup(print_fmt, print_fmt_length);
	if (!parts->print_fmt)
		return error_set(error, ENOMEM, "out of memory");
	return 0;
}

int format_text_parse(struct format_text *parts, const char *text, size_t length,
		      struct trace_error *error)
{
	*parts = (struct format_text){ 0 };
	if (length > FORMAT_LENGTH_MAX)
		return error_set(error, EINVAL, "%zu bytes are too many for a format", length);
	if (memchr(text, '\0', length))
		return error_set(error, EINVAL, "there is a NUL byte in the format");
	return format_text_split(parts, text, length, error);
}

void format_text_free(struct format_text *parts)
{
	for (unsigned int i = 0; i < parts->count; i++) {
		free(parts->lines[i].name);
		free(parts->lines[i].type);
	}
	free(parts->lines);
	free(parts->name);
	free(parts->print_fmt);
	*parts = (struct format_text){ 0 };
}
