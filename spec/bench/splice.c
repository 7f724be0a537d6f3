/* SPDX-License-Identifier: MIT */
/*
 * The least that it takes to bring an instance's whole sub-buffers into a file: a loop of splice(2),
 * from each CPU's buffer through a pipe. Prints the events and the CPU time.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "instance.h"
#include "tracedir.h"

#define PIPE_BYTES (1 << 20)

static void fail(const char *what)
{
	fprintf(stderr, "splice: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void splice_cpu(const char *dir, unsigned int cpu, const int pipe_fds[2], int out)
{
	char path[512];
	ssize_t got, done;
	int in;

	snprintf(path, sizeof(path), "%s/per_cpu/cpu%u/trace_pipe_raw", dir, cpu);
	in = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (in < 0)
		fail(path);
	for (;;) {
		got = splice(in, NULL, pipe_fds[1], NULL, PIPE_BYTES,
			     SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		for (; got > 0; got -= done) {
			done = splice(pipe_fds[0], NULL, out, NULL, (size_t)got, SPLICE_F_MOVE);
			if (done <= 0)
				fail("cannot write");
		}
	}
	close(in);
}

static uint64_t events_read(struct instance *instance, const unsigned int *cpus, int count)
{
	uint64_t events = 0;

	for (int i = 0; i < count; i++) {
		struct buffer_stats stats;

		if (instance_stats(instance, cpus[i], &stats, NULL) == 0)
			events += stats.read;
	}
	return events;
}

int main(int argc, char **argv)
{
	struct trace_error error = { 0 };
	struct instance *instance;
	unsigned int *cpus = NULL;
	int pipe_fds[2], out, count;
	char *tracing_dir;
	uint64_t start, spent;

	if (argc != 3) {
		fputs("usage: splice INSTANCE FILE\n", stderr);
		return 2;
	}
	tracing_dir = tracing_dir_find(NULL, &error);
	instance = tracing_dir ? instance_open(tracing_dir, argv[1], &error) : NULL;
	count = instance ? instance_cpus(instance, &cpus, &error) : -1;
	if (count < 0) {
		fprintf(stderr, "splice: %s\n", error.message);
		return 1;
	}
	out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (out < 0 || pipe2(pipe_fds, O_CLOEXEC) < 0)
		fail(argv[2]);
	fcntl(pipe_fds[1], F_SETPIPE_SZ, PIPE_BYTES);

	start = thread_ns();
	for (int i = 0; i < count; i++)
		splice_cpu(instance_dir(instance), cpus[i], pipe_fds, out);
	spent = thread_ns() - start;
	printf("events=%" PRIu64 " cpu_ns=%" PRIu64 "\n", events_read(instance, cpus, count),
	       spent);

	close(out);
	free(cpus);
	instance_free(instance);
	free(tracing_dir);
	return 0;
}
