/* SPDX-License-Identifier: MIT */
#ifndef LUATRACE_PROCFS_H
#define LUATRACE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* A list of process or thread ids that grows. Starts as all zeroes; pid_list_free(). */
struct pid_list {
	pid_t *pids;
	size_t count;
	size_t capacity;
};

/* -1 and errno ENOMEM when memory is short. */
int pid_list_add(struct pid_list *list, pid_t pid);
void pid_list_free(struct pid_list *list);

/* Adds the threads of @pid, itself among them. -1 and errno: ENOENT when it is gone. */
int procfs_threads(pid_t pid, struct pid_list *list);

/*
 * Adds the children of @pid, their children and so on, parents first. What is started
 * while this runs may be missed. -1 and errno when /proc cannot be read.
 */
int procfs_descendants(pid_t pid, struct pid_list *list);

/*
 * Whether this process is in a pid namespace of its own: what it knows as a pid is
 * another task's number in the kernel's records and pid filters.
 */
bool procfs_in_pid_namespace(void);

/*
 * This thread as the kernel's records have it, or -1 when that cannot be known: inside a
 * pid namespace our numbers are other tasks' outside.
 */
pid_t procfs_own_thread(void);

/*
 * Sends @signal to @pid and its descendants. With SIGKILL each is stopped before its
 * children are looked for, so that none gets away by starting another one. Errors of
 * single processes (gone meanwhile, not permitted) are passed over.
 */
void procfs_kill_tree(pid_t pid, int signal);

#endif
