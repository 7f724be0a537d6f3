/* SPDX-License-Identifier: MIT */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int error_set(struct trace_error *error, int code, const char *format, ...)
{
	int saved = errno;
	va_list args;

	if (error) {
		error->code = code ? code : EINVAL;
		va_start(args, format);
		vsnprintf(error->message, sizeof(error->message), format, args);
		va_end(args);
	}
	errno = saved;
	return -1;
}
