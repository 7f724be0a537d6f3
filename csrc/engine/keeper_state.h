/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_KEEPER_STATE_H
#define LUATRACE_KEEPER_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "instance.h"
#include "keeper.h"

/* Where a path of a request begins. */
enum keeper_scope {
	KEEPER_INSTANCE, /* the instance's directory */
	KEEPER_TOP,	 /* the tracing directory */
	KEEPER_ROOT,
};

#define KEEPER_PATH_LIMIT 512
#define KEEPER_TEXT_LIMIT (1 << 20)
/*
 * Of what is read: /proc/kallsyms has about 15 MB. The keeper is the last to go when memory is
 * short, so nobody may fill it.
 */
#define KEEPER_REPLY_LIMIT (64 << 20)

/* Both ends are one program: a request is this, the path, and the text. */
struct keeper_request {
	uint32_t call;
	uint32_t scope;
	int32_t flags;
	uint32_t path_length;
	uint32_t text_length;
};

/* And a reply is this and what was read, or what was wrong. */
struct keeper_reply {
	int32_t err; /* 0 or a negative errno value */
	uint32_t length;
	uint64_t taken;
};

/*
 * All bytes, or false. Interrupted calls go on; nobody gets SIGPIPE. Where @fd has a time limit,
 * going on behind it is up to @peer_pidfd (-1: always).
 */
bool keeper_send(int fd, const void *bytes, size_t length, int peer_pidfd);
bool keeper_receive(int fd, void *bytes, size_t length, int peer_pidfd);

/* Is that allowed? keeper_rules.c has the list. */
bool keeper_allows(const struct keeper_request *request, const char *path, const char *text);

/* The helper process. @sock is its end of the socket pair, @client whom it works for. */
_Noreturn void keeper_main(struct instance *instance, int sock, int client_pidfd);

/* The instance's descriptors, which the keeper has to keep. */
void instance_fds(const struct instance *instance, int fds[2]);

/* In the process: the keeper has the directory from now on, and @sock stands for it. */
int instance_hand_over(struct instance *instance, int sock);

#endif
