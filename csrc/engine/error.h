/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_ERROR_H
#define LUATRACE_ERROR_H

/*
 * What went wrong, for a person: what was tried, on which file, what the kernel
 * said, what to do. Lives on the caller's stack; nothing to free.
 */
struct trace_error {
	int code; /* an errno value, never 0 after a failure */
	char message[2048];
};

/* Fills @error (which may be NULL) and returns -1. Does not change errno. */
__attribute__((format(printf, 3, 4))) int error_set(struct trace_error *error, int code,
						    const char *format, ...);

#endif
