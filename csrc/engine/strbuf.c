/* SPDX-License-Identifier: MIT */
#include "strbuf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for @more bytes and the NUL behind them. */
static bool strbuf_grow(struct strbuf *buffer, size_t more)
{
	size_t needed, capacity;
	char *text;

	if (buffer->failed || more > SIZE_MAX / 2 - buffer->length - 1) {
		buffer->failed = true;
		return false;
	}
	needed = buffer->length + more + 1;
	if (needed <= buffer->capacity)
		return true;
	capacity = buffer->capacity ? buffer->capacity : 256;
	while (capacity < needed)
		capacity *= 2;
	text = realloc(buffer->text, capacity);
	if (!text) {
		buffer->failed = true;
		return false;
	}
	buffer->text = text;
	buffer->capacity = capacity;
	return true;
}

void strbuf_add(struct strbuf *buffer, const char *bytes, size_t length)
{
	if (!strbuf_grow(buffer, length))
		return;
	if (length)
		memcpy(buffer->text + buffer->length, bytes, length);
	buffer->length += length;
	buffer->text[buffer->length] = '\0';
}

void strbuf_add_string(struct strbuf *buffer, const char *string)
{
	strbuf_add(buffer, string, strlen(string));
}

void strbuf_add_char(struct strbuf *buffer, char character)
{
	strbuf_add(buffer, &character, 1);
}

void strbuf_addf(struct strbuf *buffer, const char *format, ...)
{
	va_list args, again;
	int length;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0)
		buffer->failed = true;
	else if (strbuf_grow(buffer, (size_t)length)) {
		vsnprintf(buffer->text + buffer->length, (size_t)length + 1, format, again);
		buffer->length += (size_t)length;
	}
	va_end(again);
}

void strbuf_reset(struct strbuf *buffer)
{
	buffer->length = 0;
	buffer->failed = false;
	if (buffer->text)
		buffer->text[0] = '\0';
}

void strbuf_free(struct strbuf *buffer)
{
	free(buffer->text);
	*buffer = (struct strbuf){ 0 };
}
