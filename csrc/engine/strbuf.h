/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_STRBUF_H
#define LUATRACE_STRBUF_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Text that grows. Starts as all zeroes; strbuf_free() releases it. When memory
 * runs out @failed is set, further additions do nothing, and the caller checks
 * once at the end.
 */
struct strbuf {
	char *text; /* always NUL-terminated once something was added */
	size_t length;
	size_t capacity;
	bool failed;
};

void strbuf_add(struct strbuf *buffer, const char *bytes, size_t length);
void strbuf_add_string(struct strbuf *buffer, const char *string);
void strbuf_add_char(struct strbuf *buffer, char character);

__attribute__((format(printf, 2, 3))) void strbuf_addf(struct strbuf *buffer, const char *format,
						       ...);

/* Forgets the text and keeps the memory. */
void strbuf_reset(struct strbuf *buffer);
void strbuf_free(struct strbuf *buffer);

#endif
