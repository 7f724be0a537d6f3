/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_DESCRIPTOR_H
#define LUATRACE_DESCRIPTOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Creates a file for writing that nobody else has open. One that is there under the name, of an
 * earlier process with this id that was killed, is replaced. Returns it, or a negative errno.
 */
int descriptor_create(const char *path, mode_t mode);

/* Writes all of it. 0 or an errno value. */
int descriptor_write_at(int fd, const void *bytes, size_t length, uint64_t offset);

/* Closes those from @first to @last. Async-signal-safe. */
void descriptors_close(unsigned int first, unsigned int last);

/* The next program gets standard input, output and error alone. Async-signal-safe. */
void descriptors_keep_from_program(void);

/*
 * Closes what this process was started with beside standard input, output and error: whatever
 * does not close itself when a program is run. @kept (or -1) stays, and will close itself.
 */
void descriptors_close_inherited(int kept);

#endif
