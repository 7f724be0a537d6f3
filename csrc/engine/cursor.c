/* SPDX-License-Identifier: MIT */
#include "cursor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bytes.h"

#define WINDOW_SIZE ((size_t)64 << 10)

void cursor_open_file(struct cursor *cursor, int fd, uint64_t at, uint64_t end, bool swap)
{
	*cursor = (struct cursor){
		.fd = fd,
		.at = at < end ? at : end,
		.end = end,
		.swap = swap,
		.failed = at > end,
		.failed_at = at,
	};
}

void cursor_open_memory(struct cursor *cursor, const uint8_t *memory, size_t length, bool swap)
{
	*cursor = (struct cursor){ .fd = -1, .memory = memory, .end = length, .swap = swap };
}

void cursor_close(struct cursor *cursor)
{
	free(cursor->window);
	cursor->window = NULL;
}

long cursor_pread(int fd, void *out, size_t length, uint64_t at)
{
	size_t done = 0;

	while (done < length) {
		ssize_t got = pread(fd, (char *)out + done, length - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		done += (size_t)got;
	}
	return (long)done;
}

static bool fail(struct cursor *cursor)
{
	if (!cursor->failed) {
		cursor->failed = true;
		cursor->failed_at = cursor->at;
	}
	return false;
}

/* Makes the byte at @at the first of the window, with as many behind it as there are. */
static bool load_window(struct cursor *cursor)
{
	uint64_t left = cursor->end - cursor->at;
	long got;

	if (!cursor->window)
		cursor->window = malloc(WINDOW_SIZE);
	if (!cursor->window)
		return fail(cursor);
	got = cursor_pread(cursor->fd, cursor->window, left < WINDOW_SIZE ? left : WINDOW_SIZE,
			   cursor->at);
	if (got <= 0)
		return fail(cursor);
	cursor->window_at = cursor->at;
	cursor->window_length = (size_t)got;
	return true;
}

/* The bytes at @at that can be had at once; at least one, or NULL. */
static const uint8_t *peek(struct cursor *cursor, size_t *length)
{
	uint64_t behind;

	if (cursor->failed || cursor->at >= cursor->end) {
		fail(cursor);
		return NULL;
	}
	if (cursor->memory) {
		*length = (size_t)(cursor->end - cursor->at);
		return cursor->memory + cursor->at;
	}
	behind = cursor->at - cursor->window_at;
	if (cursor->at < cursor->window_at || behind >= cursor->window_length) {
		if (!load_window(cursor))
			return NULL;
		behind = 0;
	}
	*length = cursor->window_length - (size_t)behind;
	return cursor->window + behind;
}

bool cursor_bytes(struct cursor *cursor, void *out, size_t length)
{
	uint64_t start = cursor->at;
	size_t done = 0;

	while (done < length) {
		size_t room;
		const uint8_t *bytes = peek(cursor, &room);

		if (!bytes) {
			memset(out, 0, length);
			cursor->at = start;
			return false;
		}
		if (room > length - done)
			room = length - done;
		memcpy((char *)out + done, bytes, room);
		done += room;
		cursor->at += room;
	}
	return true;
}

bool cursor_skip(struct cursor *cursor, uint64_t length)
{
	if (cursor->failed)
		return false;
	if (length > cursor->end - cursor->at)
		return fail(cursor);
	cursor->at += length;
	return true;
}

uint16_t cursor_u16(struct cursor *cursor)
{
	uint16_t value;

	cursor_bytes(cursor, &value, sizeof(value));
	return load_u16(&value, cursor->swap);
}

uint32_t cursor_u32(struct cursor *cursor)
{
	uint32_t value;

	cursor_bytes(cursor, &value, sizeof(value));
	return load_u32(&value, cursor->swap);
}

uint64_t cursor_u64(struct cursor *cursor)
{
	uint64_t value;

	cursor_bytes(cursor, &value, sizeof(value));
	return load_u64(&value, cursor->swap);
}

bool cursor_string(struct cursor *cursor, char *out, size_t room)
{
	uint64_t start = cursor->at;
	size_t done = 0;

	for (;;) {
		const uint8_t *bytes, *nul;
		size_t length;

		bytes = peek(cursor, &length);
		if (!bytes)
			break;
		if (length > room - done)
			length = room - done;
		nul = memchr(bytes, '\0', length);
		if (nul)
			length = (size_t)(nul - bytes) + 1;
		memcpy(out + done, bytes, length);
		done += length;
		cursor->at += length;
		if (nul)
			return true;
		if (done == room)
			break;
	}
	cursor->at = start;
	*out = '\0';
	return fail(cursor);
}
