/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_USER_H
#define LUATRACE_USER_H

#include <stdbool.h>
#include <sys/types.h>

#include "error.h"

#define USER_MAX_GROUPS 256

/* An ordinary user whom this process, or a child of it, is about to become. */
struct user {
	char name[256];
	uid_t uid;
	gid_t gid;
	gid_t groups[USER_MAX_GROUPS];
	int group_count;
};

/*
 * Finds a user: a name in /etc/passwd, with the groups of /etc/group; UID of one that is
 * there; UID:GID of any. The files are read as they are, so that a static program needs no
 * part of the C library at run time. Root, and who has root's group, is refused.
 */
int user_find(const char *name, struct user *user, struct trace_error *error);

/*
 * Becomes that user for good: groups, uids, no capability in any set, no_new_privs. Returns 0,
 * or an errno value when any of it has failed or could be taken back; the caller ends then.
 * Async-signal-safe where the process has one thread.
 */
int user_become(const struct user *user);

#endif
