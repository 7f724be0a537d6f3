/* SPDX-License-Identifier: MIT */
#include "stale.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "holders.h"
#include "strbuf.h"
#include "tracefile.h"
#include "trigger.h"

/* PROC_PID_INIT_INO: the first pid namespace has the same inode on every kernel. */
#define FIRST_PID_NS UINT64_C(0xeffffffc)

struct owner {
	uint64_t ns;	/* FIRST_PID_NS if the name has none */
	uint64_t start; /* clock ticks after boot; 0: was not known */
	pid_t pid;
};

/* Inode of the pid namespace of process @who ("self", "123"); 0 when it cannot be read. */
static uint64_t pid_ns(const char *who)
{
	char path[300], link[64];
	ssize_t length;
	uint64_t inode;

	snprintf(path, sizeof(path), "/proc/%s/ns/pid", who);
	length = readlink(path, link, sizeof(link) - 1);
	if (length < 0)
		return 0;
	link[length] = '\0';
	return sscanf(link, "pid:[%" SCNu64 "]", &inode) == 1 ? inode : 0;
}

struct proc_stat {
	uint64_t start;
	int threads;
	char state;
};

/* False when process @who is not in /proc, or /proc is not there. */
static bool read_stat(const char *who, struct proc_stat *stat)
{
	struct strbuf text = { 0 };
	char path[300], *at;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%s/stat", who);
	ok = tracefile_read(AT_FDCWD, path, &text) == 0;
	/* The command's name is in parentheses and may contain blanks and parentheses. */
	at = ok ? strrchr(text.text, ')') : NULL;
	ok = at && sscanf(at + 1, " %c", &stat->state) == 1;
	if (ok) {
		/* What follows is field 3; field 20 has the threads, field 22 the start time. */
		for (int field = 2; field < 20 && at; field++)
			at = strchr(at + 1, ' ');
		ok = at && sscanf(at, " %d %*s %" SCNu64, &stat->threads, &stat->start) == 2;
	}
	strbuf_free(&text);
	return ok;
}

static void own_name(char name[OWN_NAME_SIZE], char joint, unsigned int n)
{
	struct proc_stat stat = { 0 };
	uint64_t ns = pid_ns("self");
	char space[32] = "";

	if (!read_stat("self", &stat))
		stat.start = 0;
	if (ns && ns != FIRST_PID_NS)
		snprintf(space, sizeof(space), "ns%" PRIu64 "%c", ns, joint);
	snprintf(name, OWN_NAME_SIZE, "luatrace%c%s%d%c%" PRIu64 "%c%u", joint, space,
		 (int)getpid(), joint, stat.start, joint, n);
}

void stale_own_name(char name[OWN_NAME_SIZE], unsigned int n)
{
	own_name(name, '-', n);
}

void stale_own_identifier(char name[OWN_NAME_SIZE], unsigned int n)
{
	own_name(name, '_', n);
}

/* Reads decimal digits and @end behind them; strtoull would take a sign and blanks. */
static bool parse_number(const char **at, char end, uint64_t *number)
{
	char *rest;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	*number = strtoull(*at, &rest, 10);
	if (errno || *rest != end)
		return false;
	*at = rest + (end != '\0');
	return true;
}

static bool parse_name(const char *name, char joint, struct owner *owner)
{
	static const char prefix[] = "luatrace";
	uint64_t pid, n;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return false;
	name += sizeof(prefix) - 1;
	if (*name++ != joint)
		return false;
	owner->ns = FIRST_PID_NS;
	if (strncmp(name, "ns", 2) == 0) {
		name += 2;
		if (!parse_number(&name, joint, &owner->ns))
			return false;
	}
	if (!parse_number(&name, joint, &pid) || !parse_number(&name, joint, &owner->start) ||
	    pid == 0 || pid > INT32_MAX)
		return false;
	if (!parse_number(&name, '\0', &n) && (joint != '_' || !parse_number(&name, joint, &n)))
		return false;
	owner->pid = (pid_t)pid;
	return true;
}

bool stale_is_ours(const char *name)
{
	struct owner owner;

	return parse_name(name, '-', &owner);
}

bool stale_is_our_identifier(const char *name)
{
	struct owner owner;

	return parse_name(name, '_', &owner);
}

/*
 * Same process as @owner, and alive. A zombie is not: its descriptors are closed. But its first
 * thread may have ended before the others, which go on.
 */
static bool is_same(const struct owner *owner, const struct proc_stat *stat)
{
	if ((stat->state == 'Z' || stat->state == 'X') && stat->threads <= 1)
		return false;
	return owner->start == 0 || owner->start == stat->start;
}

/* /proc may have been mounted from another pid namespace: then its numbers are not ours. */
static bool proc_is_own(void)
{
	char link[32], pid[32];
	ssize_t length = readlink("/proc/self", link, sizeof(link) - 1);

	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	return length > 0 && (link[length] = '\0', strcmp(link, pid) == 0);
}

static bool is_dead_here(const struct owner *owner)
{
	struct proc_stat stat;
	char pid[32];

	if (kill(owner->pid, 0) < 0 && errno == ESRCH)
		return true;
	snprintf(pid, sizeof(pid), "%d", (int)owner->pid);
	/* It may be hidden from us (hidepid): alive is all that is known then. */
	if (!proc_is_own() || !read_stat(pid, &stat))
		return false;
	return !is_same(owner, &stat);
}

/* The pid that process @who has in its own, innermost namespace; 0 if not known. */
static pid_t innermost_pid(const char *who)
{
	struct strbuf text = { 0 };
	const char *line, *end;
	char path[300];
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%s/status", who);
	if (tracefile_read(AT_FDCWD, path, &text) == 0) {
		line = strstr(text.text, "\nNSpid:");
		if (line) {
			end = strchrnul(line + 1, '\n');
			while (end > line && !isspace((unsigned char)end[-1]))
				end--;
			pid = atoi(end);
		}
	}
	strbuf_free(&text);
	return pid;
}

/* From the first namespace every process is visible: look for one that could be @owner. */
static bool is_dead_elsewhere(const struct owner *owner)
{
	struct proc_stat stat;
	struct dirent *entry;
	bool alive = false;
	DIR *proc;

	if (!proc_is_own())
		return false;
	proc = opendir("/proc");
	if (!proc)
		return false;
	while (!alive && (entry = readdir(proc))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || pid_ns(entry->d_name) != owner->ns)
			continue;
		alive = innermost_pid(entry->d_name) == owner->pid &&
			read_stat(entry->d_name, &stat) && is_same(owner, &stat);
	}
	closedir(proc);
	return !alive;
}

static bool is_dead(const struct owner *owner)
{
	uint64_t here = pid_ns("self");

	if (owner->ns == (here ? here : FIRST_PID_NS))
		return is_dead_here(owner);
	return here == FIRST_PID_NS && is_dead_elsewhere(owner);
}

bool stale_is_dead(const char *name)
{
	struct owner owner;

	return parse_name(name, '-', &owner) && is_dead(&owner);
}

bool stale_is_dead_identifier(const char *name)
{
	struct owner owner;

	return parse_name(name, '_', &owner) && is_dead(&owner);
}

/* A dead process's triggers may hold its instance; one that someone has open is left alone. */
static bool remove_dead(int instances, const char *name)
{
	struct strbuf who = { 0 };
	bool is_open;
	int dir_fd;

	if (unlinkat(instances, name, AT_REMOVEDIR) == 0)
		return true;
	if (errno != EBUSY)
		return false;
	holders_add(&who, name);
	is_open = who.length || who.failed;
	strbuf_free(&who);
	if (is_open)
		return false;
	dir_fd = openat(instances, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir_fd < 0)
		return false;
	triggers_sweep(dir_fd);
	close(dir_fd);
	return unlinkat(instances, name, AT_REMOVEDIR) == 0;
}

unsigned int instance_remove_stale(const char *tracing_dir)
{
	unsigned int removed = 0;
	struct dirent *entry;
	char *path;
	DIR *dir;

	if (asprintf(&path, "%s/instances", tracing_dir) < 0)
		return 0;
	dir = opendir(path);
	free(path);
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		/* Should the judgement be wrong, a living owner's open descriptor makes this
		 * fail with EBUSY. */
		if (stale_is_dead(entry->d_name) && remove_dead(dirfd(dir), entry->d_name))
			removed++;
	}
	closedir(dir);
	return removed;
}
