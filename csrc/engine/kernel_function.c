/* SPDX-License-Identifier: MIT */
#include "kernel_function.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "nearest.h"
#include "tracefile.h"

/* The next "address type name[<tab>[module]]" that is code: its name, or NULL at the end. */
static const char *next_function(const char **line, size_t *length)
{
	const char *at, *type, *name;

	while (*(at = *line)) {
		*line = strchrnul(at, '\n');
		if (**line)
			(*line)++;
		type = at + strcspn(at, " \n");
		if (*type != ' ' || !strchr("tTwW", type[1]) || type[2] != ' ')
			continue;
		name = type + 3;
		*length = strcspn(name, "\t \n");
		if (*length)
			return name;
	}
	return NULL;
}

int kernel_function_exists(const char *name, struct strbuf *hint)
{
	struct strbuf text = { 0 }, names = { 0 };
	size_t wanted = strlen(name), length;
	const char *line, *found = NULL;
	bool is_there = false;
	int err;

	err = tracefile_read(AT_FDCWD, "/proc/kallsyms", &text);
	for (line = text.text; !err && !is_there && (found = next_function(&line, &length));) {
		is_there = length == wanted && memcmp(found, name, length) == 0;
		strbuf_add(&names, found, length);
		strbuf_add_char(&names, ' ');
	}
	if (!err && names.failed)
		err = -ENOMEM;
	else if (!err && !names.length)
		err = -ENODATA;
	if (!err && !is_there)
		nearest_add(hint, name, names.text);
	strbuf_free(&text);
	strbuf_free(&names);
	return err ? err : is_there;
}
