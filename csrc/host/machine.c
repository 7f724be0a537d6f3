/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../engine/procfs.h"

static void say(const char *what, const char *path)
{
	fprintf(stderr, "luatrace: cannot %s %s: %s\n", what, path, strerror(errno));
}

/* @sign is a file that is there when it is mounted. */
static void mount_missing(const char *type, const char *path, const char *sign)
{
	struct stat info;

	if (stat(sign, &info) == 0)
		return;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		say("make", path);
	else if (mount(type, path, type, MS_NOSUID | MS_NOEXEC, NULL) < 0)
		say("mount", path);
}

/* Without /dev/console in the initramfs the kernel starts us with no open descriptor. */
static void open_console(void)
{
	int fd;

	if (fcntl(STDERR_FILENO, F_GETFD) >= 0)
		return;
	fd = open("/dev/console", O_RDWR | O_NOCTTY);
	while (fd >= 0 && fd < STDERR_FILENO)
		fd = dup(fd);
}

bool machine_begin(void)
{
	if (getpid() != 1)
		return false;
	/* A container has its /proc, unless somebody forgot it: nothing is ours there either. */
	if (procfs_in_pid_namespace())
		return false;
	mount_missing("devtmpfs", "/dev", "/dev/null");
	open_console();
	mount_missing("proc", "/proc", "/proc/self");
	if (procfs_in_pid_namespace())
		return false;
	mount_missing("sysfs", "/sys", "/sys/kernel");
	mount_missing("tracefs", "/sys/kernel/tracing", "/sys/kernel/tracing/events");
	return true;
}

void machine_end(void)
{
	fflush(NULL);
	sync();
	reboot(RB_POWER_OFF);
	/* It cannot be turned off: the kernel panics when its first process ends. */
	say("turn off", "the machine");
	for (;;)
		pause();
}
