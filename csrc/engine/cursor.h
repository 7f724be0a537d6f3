/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_CURSOR_H
#define LUATRACE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Reads numbers and strings one behind the other, from a file or from memory, and never
 * beyond an end. What is not there comes as zeroes; @failed says so, and the caller checks
 * once at the end of what belongs together.
 */
struct cursor {
	int fd;
	const uint8_t *memory; /* NULL: the file */
	uint64_t at;
	uint64_t end;
	bool swap;
	bool failed;
	uint64_t failed_at; /* where the first thing stands that was not there */
	uint8_t *window;
	uint64_t window_at;
	size_t window_length;
};

/* The bytes of a file from @at to @end; cursor_close() releases its window. */
void cursor_open_file(struct cursor *cursor, int fd, uint64_t at, uint64_t end, bool swap);
void cursor_open_memory(struct cursor *cursor, const uint8_t *memory, size_t length, bool swap);
void cursor_close(struct cursor *cursor);

bool cursor_bytes(struct cursor *cursor, void *out, size_t length);
bool cursor_skip(struct cursor *cursor, uint64_t length);
uint16_t cursor_u16(struct cursor *cursor);
uint32_t cursor_u32(struct cursor *cursor);
uint64_t cursor_u64(struct cursor *cursor);

/* A string with its NUL, which must fit into @room bytes. "" if it is not there. */
bool cursor_string(struct cursor *cursor, char *out, size_t room);

/* pread(2) of all @length bytes; less at the end of the file; -1 with errno. */
long cursor_pread(int fd, void *out, size_t length, uint64_t at);

#endif
