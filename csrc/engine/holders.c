/* SPDX-License-Identifier: MIT */
#include "holders.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tracefile.h"

/* A message has room for some, and the first ones are enough to act on. */
#define MAX_HOLDERS 4

static void add_process(struct strbuf *out, const char *pid, const char *file)
{
	struct strbuf comm = { 0 };
	char path[300];

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	strbuf_addf(out, "%spid %s", out->length ? "; " : "", pid);
	if (tracefile_read(AT_FDCWD, path, &comm) == 0) {
		/* A process names itself: nothing that a terminal would act on. */
		for (size_t i = 0; i < comm.length; i++) {
			if (comm.text[i] == '\n')
				comm.text[i] = '\0';
			else if (!isprint((unsigned char)comm.text[i]))
				comm.text[i] = '?';
		}
		strbuf_addf(out, " (%s)", comm.text);
	}
	strbuf_free(&comm);
	strbuf_addf(out, ": %s", file);
}

/* The first open file of process @pid below @mark ("/instances/NAME"). */
static bool find_file(struct strbuf *out, const char *pid, const char *mark)
{
	char path[300], link[1024], *at;
	struct dirent *entry;
	bool found = false;
	ssize_t length;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	dir = opendir(path);
	if (!dir)
		return false;
	while (!found && (entry = readdir(dir))) {
		length = readlinkat(dirfd(dir), entry->d_name, link, sizeof(link) - 1);
		if (length < 0)
			continue;
		link[length] = '\0';
		at = strstr(link, mark);
		if (!at || at[strlen(mark)] != '/')
			continue;
		add_process(out, pid, at + strlen(mark) + 1);
		found = true;
	}
	closedir(dir);
	return found;
}

void holders_add(struct strbuf *out, const char *name)
{
	unsigned int count = 0;
	struct dirent *entry;
	char *mark;
	DIR *proc;

	if (asprintf(&mark, "/instances/%s", name) < 0)
		return;
	proc = opendir("/proc");
	while (proc && count < MAX_HOLDERS && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			count += find_file(out, entry->d_name, mark);
	}
	if (proc)
		closedir(proc);
	free(mark);
}
