/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_CPU_H
#define LUATRACE_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "error.h"

/*
 * Reads one CPU's part of a live ring buffer, whole sub-buffers at a time and never
 * blocking. Reading consumes.
 */
struct cpu_reader {
	int fd; /* -1 when closed */
	unsigned int cpu;
	const char *file; /* below per_cpu/cpuN: trace_pipe_raw or snapshot_raw */
};

/* @instance_fd is the instance's directory. @file is a literal. 0 or -1. */
int cpu_reader_open(struct cpu_reader *reader, int instance_fd, unsigned int cpu, const char *file,
		    struct trace_error *error);
void cpu_reader_close(struct cpu_reader *reader);

/*
 * Bytes of one sub-buffer (a partly filled one too), 0 when there is nothing now (also
 * while the CPU is offline and has no buffer), -1 when the kernel refuses.
 */
long cpu_reader_read(struct cpu_reader *reader, uint8_t *bytes, size_t size,
		     struct trace_error *error);

#endif
