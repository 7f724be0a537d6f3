/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "descriptor.h"

/* The page both processes look at is kept for the next guard. */
static struct {
	struct taken *taken;
	struct taken alone; /* where no memory can be shared: nobody else looks at it */
	pid_t pid;	    /* 0: there is none */
	int gate;	    /* open for as long as this process lives */
} state;

/*
 * A shell with job control has the terminal back by now, or takes it back at any moment, and sets
 * its modes itself; without one they are still those of the dead process.
 */
static void give_back(int fd, pid_t group, const char *text, size_t length)
{
	if (tcgetpgrp(fd) == group)
		tcsetattr(fd, TCSANOW, &state.taken->saved);
	while (length) {
		ssize_t written = write(fd, text, length);

		if (written < 0)
			return;
		text += written;
		length -= (size_t)written;
	}
}

/*
 * In the same session as its parent, which the terminal belongs to, but in a group of its own: what
 * is sent to the parent's, by the terminal or by who kills a job, does not come here. With every
 * signal blocked the background may set the terminal and write to it.
 */
static _Noreturn void guard_main(int gate, int fd, pid_t group, const char *text, size_t length)
{
	char byte;

	setpgid(0, 0);
	prctl(PR_SET_NAME, "luatrace-guard");
	if (dup2(fd, STDOUT_FILENO) < 0 || dup2(gate, STDIN_FILENO) < 0)
		_exit(1);
	descriptors_close(STDERR_FILENO, ~0U);
	while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR)
		;
	if (state.taken->is_taken)
		give_back(STDOUT_FILENO, group, text, length);
	_exit(0);
}

static void start(int fd, const char *text, size_t length)
{
	pid_t group = getpgrp();
	sigset_t all, mask;
	int gate[2];

	if (pipe2(gate, O_CLOEXEC) < 0)
		return;
	/* No handler of this process may run in the guard. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	state.pid = fork();
	if (state.pid == 0)
		guard_main(gate[0], fd, group, text, length);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	close(gate[0]);
	if (state.pid < 0) {
		state.pid = 0;
		close(gate[1]);
		return;
	}
	state.gate = gate[1];
}

struct taken *guard_start(int fd, const char *text, size_t length)
{
	if (!state.taken) {
		void *page = mmap(NULL, sizeof(*state.taken), PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		state.taken = page == MAP_FAILED ? &state.alone : page;
	}
	if (state.taken != &state.alone)
		start(fd, text, length);
	return state.taken;
}

void guard_stop(void)
{
	if (!state.pid)
		return;
	close(state.gate);
	/* It waits for a terminal that takes nothing; nobody else should. */
	if (!state.taken->is_taken) {
		while (waitpid(state.pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	state.pid = 0;
}
