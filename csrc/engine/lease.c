/* SPDX-License-Identifier: MIT */
#include "lease.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct lease {
	char *path;
	int fd;
};

static int refused(struct lease *lease, const char *what, int code, struct trace_error *error)
{
	return error_set(error, code, "cannot %s %s: %s", what, lease->path, strerror(code));
}

static int lease_open(struct lease *lease, struct trace_error *error)
{
	struct stat info;

	do {
		lease->fd = open(lease->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	} while (lease->fd < 0 && errno == EINTR);
	if (lease->fd < 0 || fstat(lease->fd, &info) < 0)
		return refused(lease, "open", errno, error);
	if (!S_ISREG(info.st_mode) || info.st_uid != geteuid())
		return error_set(error, EPERM, "cannot use %s: it is not a plain file of this user",
				 lease->path);
	while (flock(lease->fd, LOCK_EX | LOCK_NB) < 0)
		if (errno != EINTR)
			return refused(lease, "lock", errno, error);
	return 0;
}

struct lease *lease_take(const char *path, struct trace_error *error)
{
	struct lease *lease = calloc(1, sizeof(*lease));

	if (lease) {
		lease->fd = -1;
		lease->path = strdup(path);
	}
	if (!lease || !lease->path)
		error_set(error, ENOMEM, "out of memory");
	else if (lease_open(lease, error) == 0)
		return lease;
	lease_free(lease);
	return NULL;
}

int lease_read(struct lease *lease, struct strbuf *out, struct trace_error *error)
{
	char piece[4096];
	off_t at = 0;
	ssize_t length;

	while ((length = pread(lease->fd, piece, sizeof(piece), at))) {
		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return refused(lease, "read", errno, error);
		strbuf_add(out, piece, (size_t)length);
		at += length;
	}
	return out->failed ? error_set(error, ENOMEM, "out of memory") : 0;
}

int lease_write(struct lease *lease, const char *text, size_t length, struct trace_error *error)
{
	size_t done = 0;

	while (done < length) {
		ssize_t written = pwrite(lease->fd, text + done, length - done, (off_t)done);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return refused(lease, "write", errno, error);
		done += (size_t)written;
	}
	if (ftruncate(lease->fd, (off_t)length) < 0)
		return refused(lease, "write", errno, error);
	return 0;
}

void lease_free(struct lease *lease)
{
	if (!lease)
		return;
	/* A child that closes its copy of the descriptor leaves the lock; LOCK_UN would not. */
	if (lease->fd >= 0)
		close(lease->fd);
	free(lease->path);
	free(lease);
}
