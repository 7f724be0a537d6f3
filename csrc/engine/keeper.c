/* SPDX-License-Identifier: MIT */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper_state.h"
#include "procfs.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* What this process knows of its keeper. Rights are a matter of the whole process. */
static struct {
	struct user user;
	bool dropped;
	char *top; /* the tracing directory */
	int fd;	   /* the socket, which stands for the instance's directory; -1: none */
	pid_t pid;
	pid_t thread;
	pid_t client; /* a child of it has the socket too, but must not use it */
} state = { .fd = -1, .thread = -1 };

const char *keeper_user(void)
{
	return state.dropped ? state.user.name : NULL;
}

pid_t keeper_thread(void)
{
	return state.thread;
}

/* ------------------------------------------------------------------------- */
/* Talking                                                                    */
/* ------------------------------------------------------------------------- */

/* After a call on the socket that did nothing: is there a reason to try again? */
static bool goes_on(int peer_pidfd)
{
	struct pollfd peer = { .fd = peer_pidfd, .events = POLLIN };

	if (errno == EINTR)
		return true;
	return errno == EAGAIN && poll(&peer, 1, 0) == 0;
}

bool keeper_send(int fd, const void *bytes, size_t length, int peer_pidfd)
{
	const char *at = bytes;

	while (length) {
		ssize_t put = send(fd, at, length, MSG_NOSIGNAL);

		if (put > 0) {
			at += put;
			length -= (size_t)put;
		} else if (put == 0 || !goes_on(peer_pidfd)) {
			return false;
		}
	}
	return true;
}

bool keeper_receive(int fd, void *bytes, size_t length, int peer_pidfd)
{
	char *at = bytes;

	while (length) {
		ssize_t got = recv(fd, at, length, 0);

		if (got > 0) {
			at += got;
			length -= (size_t)got;
		} else if (got == 0 || !goes_on(peer_pidfd)) {
			return false;
		}
	}
	return true;
}

/* The path below the tracing directory, or NULL when @file leads elsewhere. */
static const char *below_top(const char *file)
{
	size_t length = state.top ? strlen(state.top) : 0;

	if (!length || strncmp(file, state.top, length) != 0 || file[length] != '/')
		return NULL;
	return file + length + 1;
}

bool keeper_serves(int dir_fd, const char *file)
{
	if (state.fd < 0 || state.client != getpid())
		return false;
	if (dir_fd == AT_FDCWD)
		return below_top(file) || strcmp(file, "/proc/kallsyms") == 0;
	return dir_fd == state.fd;
}

static bool receive_text(struct strbuf *out, size_t length)
{
	char chunk[16384];

	while (length) {
		size_t part = length < sizeof(chunk) ? length : sizeof(chunk);

		if (!keeper_receive(state.fd, chunk, part, -1))
			return false;
		if (out)
			strbuf_add(out, chunk, part);
		length -= part;
	}
	return true;
}

int keeper_ask(enum keeper_call call, int dir_fd, const char *file, int flags, const char *text,
	       size_t length, struct strbuf *out, size_t *taken)
{
	struct keeper_request request = { .call = (uint32_t)call, .flags = flags };
	struct keeper_reply reply;

	request.scope = KEEPER_INSTANCE;
	if (dir_fd == AT_FDCWD) {
		request.scope = below_top(file) ? KEEPER_TOP : KEEPER_ROOT;
		file = below_top(file) ? below_top(file) : file;
	}
	if (strlen(file) >= KEEPER_PATH_LIMIT)
		return -ENAMETOOLONG;
	if (length > KEEPER_TEXT_LIMIT)
		return -E2BIG;
	request.path_length = (uint32_t)strlen(file);
	request.text_length = (uint32_t)length;
	if (!keeper_send(state.fd, &request, sizeof(request), -1) ||
	    !keeper_send(state.fd, file, request.path_length, -1) ||
	    !keeper_send(state.fd, text, length, -1) ||
	    !keeper_receive(state.fd, &reply, sizeof(reply), -1) ||
	    !receive_text(out, reply.length))
		return -EPIPE;
	if (taken)
		*taken = (size_t)reply.taken;
	if (reply.err)
		return reply.err;
	if (out) {
		strbuf_add(out, "", 0);
		if (out->failed)
			return -ENOMEM;
	}
	return 0;
}

int keeper_remove(struct trace_error *error)
{
	struct strbuf why = { 0 };
	int err;

	err = keeper_ask(KEEPER_REMOVE, state.fd, "", 0, "", 0, &why, NULL);
	if (err && why.length)
		error_set(error, -err, "%s", why.text);
	else if (err)
		error_set(error, -err,
			  "cannot remove the instance: the helper process that has the right to is "
			  "gone. The next luatrace that root runs removes it");
	strbuf_free(&why);
	if (err)
		return -1;
	close(state.fd);
	state.fd = -1;
	while (waitpid(state.pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* ------------------------------------------------------------------------- */
/* Dropping                                                                   */
/* ------------------------------------------------------------------------- */

static int cannot(int err, const char *what, struct trace_error *error)
{
	return error_set(error, err, "cannot %s: %s", what, strerror(err));
}

/* No handler of this process may run in the keeper, and none of its threads are there. */
static int start(struct instance *instance, struct trace_error *error)
{
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	sigset_t all, mask;
	int pair[2], err;

	state.top = strdup(instance_tracing_dir(instance));
	if (!state.top)
		return error_set(error, ENOMEM, "out of memory");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return cannot(errno, "make a socket pair for the helper process", error);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	state.client = getpid();
	state.pid = fork();
	if (state.pid == 0) {
		close(pair[0]);
		keeper_main(instance, pair[1], pidfd);
	}
	err = errno;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	close(pair[1]);
	if (pidfd >= 0)
		close(pidfd);
	if (state.pid < 0) {
		close(pair[0]);
		return cannot(err, "start the helper process", error);
	}
	if (!procfs_in_pid_namespace())
		state.thread = state.pid;
	err = instance_hand_over(instance, pair[0]);
	close(pair[0]);
	if (err < 0)
		return cannot(-err, "hand the instance to the helper process", error);
	state.fd = instance_dir_fd(instance);
	return 0;
}

int keeper_drop_rights(struct instance *instance, const struct user *user,
		       struct trace_error *error)
{
	int err;

	if (state.dropped)
		return error_set(error, EALREADY, "rights have been dropped already, for %s",
				 state.user.name);
	state.user = *user;
	if (instance && start(instance, error) < 0)
		return -1;
	state.dropped = true;
	err = user_become(&state.user);
	if (!err)
		return 0;
	if (err == EPERM)
		return error_set(error, err,
				 "cannot become the user %s: operation not permitted. Only root "
				 "(with CAP_SETUID and CAP_SETGID) can",
				 user->name);
	return error_set(error, err, "cannot become the user %s: %s", user->name, strerror(err));
}
