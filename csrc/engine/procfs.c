/* SPDX-License-Identifier: MIT */
#include "procfs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* include/linux/proc_ns.h: PROC_PID_INIT_INO */
#define INITIAL_PID_NAMESPACE 0xEFFFFFFC

int pid_list_add(struct pid_list *list, pid_t pid)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 32;
		pid_t *pids = realloc(list->pids, capacity * sizeof(*pids));

		if (!pids) {
			errno = ENOMEM;
			return -1;
		}
		list->pids = pids;
		list->capacity = capacity;
	}
	list->pids[list->count++] = pid;
	return 0;
}

void pid_list_free(struct pid_list *list)
{
	free(list->pids);
	memset(list, 0, sizeof(*list));
}

/* Adds the directory's entries that are numbers. */
static int add_entries(const char *path, struct pid_list *list)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int err = 0;

	if (!dir)
		return -1;
	errno = 0;
	while ((entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (pid_list_add(list, (pid_t)strtol(entry->d_name, NULL, 10)) < 0)
			break;
		errno = 0;
	}
	err = errno;
	closedir(dir);
	errno = err;
	return err ? -1 : 0;
}

int procfs_threads(pid_t pid, struct pid_list *list)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return add_entries(path, list);
}

/* 0 when the process is gone or its line is not understood. */
static pid_t parent_of(pid_t pid)
{
	char path[64];
	char line[512];
	char *name_end;
	ssize_t length;
	int parent;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	length = read(fd, line, sizeof(line) - 1);
	close(fd);
	if (length <= 0)
		return 0;
	line[length] = '\0';

	/* "PID (NAME) STATE PARENT ...", and NAME may hold anything, ")" included. */
	name_end = strrchr(line, ')');
	if (!name_end || sscanf(name_end + 1, " %*c %d", &parent) != 1)
		return 0;
	return parent;
}

static bool contains(const struct pid_list *list, size_t from, pid_t pid)
{
	for (size_t i = from; i < list->count; i++) {
		if (list->pids[i] == pid)
			return true;
	}
	return false;
}

/* Adds those whose parent is @pid or was added at @from or later. Returns how many. */
static int add_generation(pid_t pid, size_t from, struct pid_list *list)
{
	struct pid_list all = { 0 };
	int added = 0;
	int result;

	result = add_entries("/proc", &all);
	for (size_t i = 0; result == 0 && i < all.count; i++) {
		pid_t parent = parent_of(all.pids[i]);

		if (parent <= 0 || contains(list, from, all.pids[i]))
			continue;
		if (parent != pid && !contains(list, from, parent))
			continue;
		result = pid_list_add(list, all.pids[i]);
		added++;
	}
	int err = errno;

	pid_list_free(&all);
	errno = err;
	return result < 0 ? -1 : added;
}

int procfs_descendants(pid_t pid, struct pid_list *list)
{
	size_t from = list->count;
	int added;

	/* Pids wrap around, so a child can have the smaller one: until nothing is new. */
	do {
		added = add_generation(pid, from, list);
	} while (added > 0);
	return added;
}

bool procfs_in_pid_namespace(void)
{
	struct stat namespace;

	return stat("/proc/self/ns/pid", &namespace) == 0 &&
	       namespace.st_ino != INITIAL_PID_NAMESPACE;
}

pid_t procfs_own_thread(void)
{
	return procfs_in_pid_namespace() ? -1 : gettid();
}

void procfs_kill_tree(pid_t pid, int signal)
{
	struct pid_list list = { 0 };

	if (signal == SIGKILL) {
		int added;

		kill(pid, SIGSTOP);
		do {
			size_t known = list.count;

			added = add_generation(pid, 0, &list);
			for (size_t i = known; i < list.count; i++)
				kill(list.pids[i], SIGSTOP);
		} while (added > 0);
	} else {
		procfs_descendants(pid, &list);
	}

	kill(pid, signal);
	for (size_t i = 0; i < list.count; i++)
		kill(list.pids[i], signal);
	pid_list_free(&list);
}
