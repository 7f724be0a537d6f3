/* SPDX-License-Identifier: MIT */
/*
 * Runs a command and writes what it took as one line of key=value to the file named
 * first: its exit status (128 + signal for a killed one), wall and CPU time, and the
 * most memory that it had at once. Its own descriptors are the command's.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t timeval_ns(struct timeval time)
{
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_usec * 1000;
}

int main(int argc, char **argv)
{
	struct rusage usage;
	uint64_t start;
	uint64_t end;
	FILE *out;
	int status;
	pid_t pid;

	if (argc < 3) {
		fputs("usage: measure FILE COMMAND [ARGUMENT...]\n", stderr);
		return 2;
	}
	start = now_ns();
	pid = fork();
	if (pid == 0) {
		execvp(argv[2], argv + 2);
		_exit(127);
	}
	while (pid < 0 || wait4(pid, &status, 0, &usage) < 0) {
		if (pid > 0 && errno == EINTR)
			continue;
		perror("measure");
		return 1;
	}
	end = now_ns();
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);

	out = fopen(argv[1], "we");
	if (!out) {
		fprintf(stderr, "measure: %s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	fprintf(out, "status=%d wall_ns=%llu user_ns=%llu sys_ns=%llu peak_kb=%ld\n", status,
		(unsigned long long)(end - start), (unsigned long long)timeval_ns(usage.ru_utime),
		(unsigned long long)timeval_ns(usage.ru_stime), usage.ru_maxrss);
	return fclose(out) ? 1 : 0;
}
