/* SPDX-License-Identifier: MIT */
#include "replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.h"

static int write_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

static int write_and_close(int fd, const char *text, size_t length)
{
	int err = write_all(fd, text, length);

	if (close(fd) < 0 && !err)
		err = -errno;
	return err;
}

static int write_in_place(const char *path, const char *text, size_t length)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : write_and_close(fd, text, length);
}

static int write_beside(const char *path, const char *text, size_t length)
{
	char *beside;
	int fd, err;

	if (asprintf(&beside, "%s.%d.tmp", path, (int)getpid()) < 0)
		return -ENOMEM;
	fd = descriptor_create(beside, 0666);
	err = fd < 0 ? fd : write_and_close(fd, text, length);
	if (!err && rename(beside, path) < 0)
		err = -errno;
	if (err && fd >= 0)
		unlink(beside);
	free(beside);
	return err;
}

int file_replace(const char *path, const char *text, size_t length, struct trace_error *error)
{
	struct stat status;
	int err;

	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		err = S_ISDIR(status.st_mode) ? -EISDIR : write_in_place(path, text, length);
	else
		err = write_beside(path, text, length);
	return err ? error_set(error, -err, "cannot write to '%s': %s", path, strerror(-err)) : 0;
}
