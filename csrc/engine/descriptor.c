/* SPDX-License-Identifier: MIT */
#include "descriptor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

int descriptor_create(const char *path, mode_t mode)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(path, flags, mode);

	if (fd < 0 && errno == EEXIST && unlink(path) == 0)
		fd = open(path, flags, mode);
	return fd < 0 ? -errno : fd;
}

int descriptor_write_at(int fd, const void *bytes, size_t length, uint64_t offset)
{
	const char *at = bytes;

	while (length) {
		ssize_t done = pwrite(fd, at, length, (off_t)offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? errno : ENOSPC;
		at += done;
		offset += (uint64_t)done;
		length -= (size_t)done;
	}
	return 0;
}

void descriptors_close(unsigned int first, unsigned int last)
{
	if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
		return;
	for (long fd = first; fd <= last && fd < sysconf(_SC_OPEN_MAX); fd++)
		close((int)fd);
}

void descriptors_keep_from_program(void)
{
	if (syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0)
		return;
	/* Linux 5.10 */
	for (long fd = STDERR_FILENO + 1; fd < sysconf(_SC_OPEN_MAX); fd++)
		(void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
}

static void close_if_inherited(int fd)
{
	int flags = fd > STDERR_FILENO ? fcntl(fd, F_GETFD) : -1;

	if (flags >= 0 && !(flags & FD_CLOEXEC))
		close(fd);
}

void descriptors_close_inherited(int kept)
{
	struct dirent *entry;
	DIR *dir;

	if (kept > STDERR_FILENO)
		(void)fcntl(kept, F_SETFD, FD_CLOEXEC);
	dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir)))
		close_if_inherited(atoi(entry->d_name));
	if (dir) {
		closedir(dir);
		return;
	}
	for (long fd = 0; fd < sysconf(_SC_OPEN_MAX); fd++)
		close_if_inherited((int)fd);
}
