/* SPDX-License-Identifier: MIT */
/* The helper process that keeps the rights: see keeper.h. */
#include "keeper_state.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "clock.h"
#include "descriptor.h"
#include "strbuf.h"
#include "tracefile.h"

#ifndef CAP_TO_MASK
#define CAP_TO_MASK(cap) (1U << ((cap)&31))
#endif

/* ------------------------------------------------------------------------- */
/* Being nobody's child                                                       */
/* ------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/*
 * The gate of a command that is held, the files of a pipeline, the pages of the stream: all of
 * them have to close when the process that they belong to ends.
 */
static void close_others(int *kept, size_t count)
{
	unsigned int next = 0;

	qsort(kept, count, sizeof(*kept), compare);
	for (size_t i = 0; i < count; i++) {
		if (kept[i] < 0)
			continue;
		if ((unsigned int)kept[i] > next)
			descriptors_close(next, (unsigned int)kept[i] - 1);
		next = (unsigned int)kept[i] + 1;
	}
	descriptors_close(next, ~0U);
}

/* Files of root's with other modes, and addresses in /proc/kallsyms: nothing else needs any. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };
	const uint32_t low = CAP_TO_MASK(CAP_DAC_OVERRIDE) | CAP_TO_MASK(CAP_DAC_READ_SEARCH);
	const uint32_t high = CAP_TO_MASK(CAP_SYSLOG);

	if (syscall(SYS_capget, &header, data) < 0)
		return;
	data[0].permitted &= low;
	data[1].permitted &= high;
	for (unsigned int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	(void)syscall(SYS_capset, &header, data);
}

static void detach(const struct instance *instance, int sock, int client_pidfd)
{
	int kept[4] = { sock, client_pidfd };
	sigset_t all;

	instance_fds(instance, &kept[2]);
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	setsid();
	(void)!chdir("/");
	prctl(PR_SET_NAME, "luatrace-keeper", 0, 0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* When memory is short the process goes, and this one cleans up behind it. */
	(void)tracefile_write(AT_FDCWD, "/proc/self/oom_score_adj", 0, "-1000", 5, NULL);
	close_others(kept, 4);
	drop_capabilities();
}

/* ------------------------------------------------------------------------- */
/* Requests                                                                   */
/* ------------------------------------------------------------------------- */

struct keeper {
	struct instance *instance;
	int sock;
	int client_pidfd; /* -1: the kernel has none, or is not asked */
	bool is_removed;
};

/* One that cannot be removed yet shall record nothing. */
static void turn_off(struct keeper *keeper)
{
	int dir_fd = instance_dir_fd(keeper->instance);

	/* gone once removing has begun */
	if (dir_fd < 0)
		return;
	(void)tracefile_write(dir_fd, "tracing_on", 0, "0", 1, NULL);
	(void)tracefile_write(dir_fd, "set_event", O_TRUNC, NULL, 0, NULL);
}

static int list_names(int dir_fd, const char *dir, struct strbuf *out)
{
	char **names;
	int err = tracefile_list(dir_fd, dir, &names);

	if (err)
		return err;
	for (size_t i = 0; names[i]; i++)
		strbuf_add(out, names[i], strlen(names[i]) + 1);
	free(names);
	return 0;
}

static int remove_instance(struct keeper *keeper, struct strbuf *out)
{
	struct trace_error error;

	turn_off(keeper);
	if (instance_destroy(keeper->instance, &error) == 0) {
		keeper->is_removed = true;
		return 0;
	}
	strbuf_add_string(out, error.message);
	return -error.code;
}

static int read_file(struct keeper *keeper, const struct keeper_request *request, const char *path,
		     struct strbuf *out)
{
	char *whole;
	int err;

	if (request->scope == KEEPER_INSTANCE)
		return tracefile_read_limited(instance_dir_fd(keeper->instance), path,
					      KEEPER_REPLY_LIMIT, out);
	if (request->scope == KEEPER_ROOT)
		return tracefile_read_limited(AT_FDCWD, path, KEEPER_REPLY_LIMIT, out);
	if (asprintf(&whole, "%s/%s", instance_tracing_dir(keeper->instance), path) < 0)
		return -ENOMEM;
	err = tracefile_read_limited(AT_FDCWD, whole, KEEPER_REPLY_LIMIT, out);
	free(whole);
	return err;
}

/* A request that is allowed. */
static int act(struct keeper *keeper, const struct keeper_request *request, const char *path,
	       const char *text, struct strbuf *out, size_t *taken)
{
	int dir_fd = instance_dir_fd(keeper->instance);

	switch (request->call) {
	case KEEPER_READ:
		return read_file(keeper, request, path, out);
	case KEEPER_WRITE:
		return tracefile_write(dir_fd, path, request->flags, text, request->text_length,
				       taken);
	case KEEPER_WRITE_ALL:
		return tracefile_write_all(dir_fd, path, request->flags, text,
					   request->text_length);
	case KEEPER_LIST:
		return list_names(dir_fd, path, out);
	case KEEPER_EXISTS:
		return tracefile_exists(dir_fd, path) ? 0 : -ENOENT;
	case KEEPER_REMOVE:
		return remove_instance(keeper, out);
	default:
		return -EINVAL;
	}
}

/* False when there is nobody to answer to. */
static bool answer(struct keeper *keeper, const struct keeper_request *request, const char *path,
		   const char *text)
{
	struct keeper_reply reply = { 0 };
	struct strbuf out = { 0 };
	size_t taken = 0;
	bool sent;

	if (!keeper_allows(request, path, text))
		reply.err = -EACCES;
	else
		reply.err = act(keeper, request, path, text, &out, &taken);
	if (out.failed)
		reply.err = -ENOMEM;
	else if (out.length > KEEPER_REPLY_LIMIT)
		reply.err = -EFBIG;
	else if (!reply.err || request->call == KEEPER_REMOVE)
		reply.length = (uint32_t)out.length;
	reply.taken = taken;
	sent = keeper_send(keeper->sock, &reply, sizeof(reply), keeper->client_pidfd) &&
	       keeper_send(keeper->sock, out.text, reply.length, keeper->client_pidfd);
	strbuf_free(&out);
	return sent;
}

static bool receive(struct keeper *keeper, void *bytes, size_t length)
{
	return keeper_receive(keeper->sock, bytes, length, keeper->client_pidfd);
}

/* Takes one request. False when the other end is closed, or does not keep to the protocol. */
static bool serve(struct keeper *keeper)
{
	struct keeper_request request;
	char path[KEEPER_PATH_LIMIT + 1];
	char *text;
	bool goes_on;

	if (!receive(keeper, &request, sizeof(request)) ||
	    request.path_length > KEEPER_PATH_LIMIT || request.text_length > KEEPER_TEXT_LIMIT)
		return false;
	text = malloc((size_t)request.text_length + 1);
	if (!text)
		return false;
	goes_on = receive(keeper, path, request.path_length) &&
		  receive(keeper, text, request.text_length);
	if (goes_on) {
		path[request.path_length] = '\0';
		text[request.text_length] = '\0';
		goes_on = strlen(path) == request.path_length &&
			  answer(keeper, &request, path, text);
	}
	free(text);
	return goes_on && !keeper->is_removed;
}

/* ------------------------------------------------------------------------- */
/* The end                                                                    */
/* ------------------------------------------------------------------------- */

/* As long as it takes: who has files of the instance open is asked for nothing. */
static void clean_up(struct keeper *keeper)
{
	struct trace_error error;

	turn_off(keeper);
	for (long ms = 250; instance_destroy(keeper->instance, &error) < 0;
	     ms += ms < 4000 ? ms : 0) {
		if (error.code != EBUSY)
			break;
		clock_sleep_ms(ms);
	}
}

_Noreturn void keeper_main(struct instance *instance, int sock, int client_pidfd)
{
	struct keeper keeper = { instance, sock, client_pidfd, false };
	struct pollfd fds[2] = {
		{ .fd = sock, .events = POLLIN },
		{ .fd = client_pidfd, .events = POLLIN },
	};
	/* In the middle of a message: then a look at whether the other end still runs. */
	const struct timeval limit = { .tv_sec = 1 };
	int ready;

	detach(instance, sock, client_pidfd);
	setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	instance_set_ours(instance, true);
	for (;;) {
		ready = poll(fds, 2, -1);
		if (ready < 0 && errno != EINTR)
			break;
		/* Of a process that has ended a request may be left: nobody wants it. */
		if (fds[1].revents || (fds[0].revents && !serve(&keeper)))
			break;
	}
	if (!keeper.is_removed)
		clean_up(&keeper);
	_exit(0);
}
