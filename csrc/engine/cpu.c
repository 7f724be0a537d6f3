/* SPDX-License-Identifier: MIT */
#include "cpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "keeper.h"

int cpu_reader_open(struct cpu_reader *reader, int instance_fd, unsigned int cpu, const char *file,
		    struct trace_error *error)
{
	char path[64];

	reader->cpu = cpu;
	reader->file = file;
	snprintf(path, sizeof(path), "per_cpu/cpu%u/%s", cpu, file);
	if (keeper_serves(instance_fd, path)) {
		reader->fd = -1;
		return error_set(error, EACCES,
				 "cannot open %s: the right to has been given up for the user %s "
				 "(--user); what was open before the script began is all there is",
				 path, keeper_user());
	}
	reader->fd = openat(instance_fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (reader->fd < 0) {
		int err = errno;

		if (err == EMFILE || err == ENFILE)
			return error_set(
				error, err,
				"cannot open %s: %s; a session needs one descriptor for each "
				"CPU: raise the limit (ulimit -n)",
				path, strerror(err));
		return error_set(error, err, "cannot open %s: %s", path, strerror(err));
	}
	return 0;
}

void cpu_reader_close(struct cpu_reader *reader)
{
	if (reader->fd >= 0)
		close(reader->fd);
	reader->fd = -1;
}

long cpu_reader_read(struct cpu_reader *reader, uint8_t *bytes, size_t size,
		     struct trace_error *error)
{
	for (;;) {
		ssize_t got = read(reader->fd, bytes, size);
		int err = errno;

		if (got >= 0)
			return (long)got;
		switch (err) {
		case EINTR:
			continue;
		case EAGAIN:
		case ENODEV:
		case ENXIO:
			return 0;
		default:
			return error_set(error, err, "cannot read per_cpu/cpu%u/%s: %s",
					 reader->cpu, reader->file, strerror(err));
		}
	}
}
