/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../engine/descriptor.h"
#include "../engine/procfs.h"
#include "binding.h"
#include "rights.h"
#include "signals.h"

#define PROCESS "tracefs.process"
#define PIDS "tracefs.pids"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/*
 * A child that waits behind a gate until it is let go, or (not ours) a process that is
 * only watched. The command's name is the user value, for messages.
 */
struct process {
	pid_t pid;
	int pidfd;  /* -1: the kernel has none */
	int gate;   /* socket to the held child; -1 once it has been let go */
	int status; /* as waitpid gives it, valid once @ended */
	bool ours;
	bool ended;
	bool closed;
};

static struct process *to_process(lua_State *L)
{
	return luaL_checkudata(L, 1, PROCESS);
}

static struct process *check_process(lua_State *L)
{
	struct process *process = to_process(L);

	if (process->closed)
		luaL_error(L, "process is closed");
	return process;
}

static int push_no_process(lua_State *L, lua_Integer pid)
{
	lua_pushnil(L);
	lua_pushfstring(L, "there is no process %I", pid);
	lua_pushinteger(L, ESRCH);
	return 3;
}

static struct process *new_process(lua_State *L)
{
	struct process *process = lua_newuserdatauv(L, sizeof(*process), 1);

	memset(process, 0, sizeof(*process));
	process->pidfd = -1;
	process->gate = -1;
	process->closed = true;
	luaL_setmetatable(L, PROCESS);
	return process;
}

static int open_pidfd(pid_t pid)
{
	/* Close-on-exec by nature. */
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* In the child. The parent's threads are not here: async-signal-safe calls only. */
static _Noreturn void child_main(char *const argv[], int gate, const sigset_t *mask,
				 bool die_with_parent, pid_t parent, const struct user *user)
{
	char go;
	ssize_t got;
	int err = 0;

	signals_restore_in_child();
	if (user)
		err = user_become(user);
	if (user)
		descriptors_keep_from_program();
	/* Changing the user takes the wish for a signal away: it comes behind that. */
	if (die_with_parent) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			_exit(127);
	}
	sigprocmask(SIG_SETMASK, mask, NULL);

	do {
		got = recv(gate, &go, 1, 0);
	} while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(127);

	if (!err) {
		execvp(argv[0], argv);
		err = errno;
	}
	send(gate, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(127);
}

/* Pushes a process whose child is held. 1 value, or nil and why. */
static int spawn(lua_State *L, char *const argv[], bool die_with_parent, const struct user *user)
{
	struct process *process = new_process(L);
	pid_t parent = getpid();
	sigset_t all, mask;
	int gate[2];
	int err;

	lua_pushstring(L, argv[0]);
	lua_setiuservalue(L, -2, 1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, gate) < 0) {
		err = errno;
		return push_errno(L, err, lua_pushfstring(L, "cannot start '%s'", argv[0]));
	}

	/* Until the child has its own dispositions, no handler of ours may run in it. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	process->pid = fork();
	if (process->pid == 0) {
		close(gate[0]);
		child_main(argv, gate[1], &mask, die_with_parent, parent, user);
	}
	err = errno;
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	close(gate[1]);
	if (process->pid < 0) {
		close(gate[0]);
		return push_errno(L, err, lua_pushfstring(L, "cannot start '%s'", argv[0]));
	}

	process->closed = false;
	process->ours = true;
	process->gate = gate[0];
	process->pidfd = open_pidfd(process->pid);
	return 1;
}

/* The words of the table at @index as an argument vector, on the stack as a userdata. */
static char **check_argv(lua_State *L, int index)
{
	lua_Integer count = luaL_len(L, index);
	char **argv;

	luaL_argcheck(L, count > 0, index, "no program to run");
	argv = lua_newuserdatauv(L, ((size_t)count + 1) * sizeof(*argv), 0);
	for (lua_Integer i = 0; i < count; i++) {
		size_t length;
		const char *word;

		if (lua_rawgeti(L, index, i + 1) != LUA_TSTRING)
			luaL_argerror(L, index, "a list of strings expected");
		word = lua_tolstring(L, -1, &length);
		luaL_argcheck(L, strlen(word) == length, index, "a word contains a zero byte");
		argv[i] = (char *)word; /* the table keeps it */
		lua_pop(L, 1);
	}
	argv[count] = NULL;
	return argv;
}

static int process_spawn(lua_State *L)
{
	bool die_with_parent = lua_toboolean(L, 2);
	const struct user *user = lua_isnoneornil(L, 3) ? NULL : check_user(L, 3);

	if (lua_type(L, 1) == LUA_TSTRING) {
		size_t length;
		const char *line = lua_tolstring(L, 1, &length);
		char *argv[] = { "/bin/sh", "-c", (char *)line, NULL };

		luaL_argcheck(L, strlen(line) == length, 1, "the command contains a zero byte");
		return spawn(L, argv, die_with_parent, user);
	}
	luaL_checktype(L, 1, LUA_TTABLE);
	return spawn(L, check_argv(L, 1), die_with_parent, user);
}

/* A process of somebody else, to see when it ends. */
static int process_watch(lua_State *L)
{
	lua_Integer pid = luaL_checkinteger(L, 1);
	struct process *process;

	luaL_argcheck(L, pid > 0 && pid <= INT32_MAX, 1, "not a pid");
	process = new_process(L);
	process->pidfd = open_pidfd((pid_t)pid);
	if (process->pidfd < 0 &&
	    (errno == ESRCH || errno == EINVAL || (kill((pid_t)pid, 0) < 0 && errno == ESRCH))) {
		/* EINVAL: there is such a thread, but it is not a process. */
		return push_no_process(L, pid);
	}
	process->pid = (pid_t)pid;
	process->closed = false;
	return 1;
}

/* Has it ended? Reaps it. False and errno when nobody can tell. */
static bool process_ended(struct process *process)
{
	pid_t got;

	if (process->ended)
		return true;
	if (!process->ours) {
		struct pollfd pollfd = { .fd = process->pidfd, .events = POLLIN };

		if (process->pidfd >= 0)
			process->ended = poll(&pollfd, 1, 0) == 1;
		else
			process->ended = kill(process->pid, 0) < 0 && errno == ESRCH;
		errno = 0;
		return process->ended;
	}
	do {
		errno = 0;
		got = waitpid(process->pid, &process->status, WNOHANG);
	} while (got < 0 && errno == EINTR);
	process->ended = got == process->pid;
	return process->ended;
}

/* For a child that has to go now. */
static void reap(struct process *process)
{
	pid_t got;

	do {
		got = waitpid(process->pid, &process->status, 0);
	} while (got < 0 && errno == EINTR);
	process->ended = true;
}

static int process_release(lua_State *L)
{
	struct process *process = check_process(L);
	int err = 0;
	ssize_t got;

	if (process->gate < 0)
		return luaL_error(L, "process has been released already");

	/* A child that was killed behind the gate is found by wait(). */
	send(process->gate, "", 1, MSG_NOSIGNAL);
	do {
		got = recv(process->gate, &err, sizeof(err), MSG_WAITALL);
	} while (got < 0 && errno == EINTR);
	close_fd(&process->gate);
	if (got == sizeof(err)) {
		reap(process);
		lua_getiuservalue(L, 1, 1);
		return push_errno(L, err,
				  lua_pushfstring(L, "cannot run '%s'", lua_tostring(L, -1)));
	}
	lua_pushboolean(L, true);
	return 1;
}

static int process_wait(lua_State *L)
{
	struct process *process = check_process(L);

	if (!process_ended(process)) {
		int err = errno;

		if (err)
			return push_errno(L, err, "cannot learn how the process ended");
		lua_pushnil(L);
		return 1;
	}
	if (!process->ours) {
		lua_pushliteral(L, "gone");
		return 1;
	}
	if (WIFSIGNALED(process->status)) {
		lua_pushliteral(L, "signal");
		lua_pushinteger(L, WTERMSIG(process->status));
	} else {
		lua_pushliteral(L, "exit");
		lua_pushinteger(L, WEXITSTATUS(process->status));
	}
	return 2;
}

static int process_kill(lua_State *L)
{
	static const char *const scopes[] = { "process", "tree", NULL };
	struct process *process = check_process(L);
	lua_Integer signal = luaL_checkinteger(L, 2);
	int tree = luaL_checkoption(L, 3, "process", scopes);

	luaL_argcheck(L, signal >= 0 && signal < NSIG, 2, "not a signal");
	luaL_argcheck(L, process->ours, 1, "only a child that was spawned here is killed");
	/* Not reaped means that the pid is still this process's. */
	if (process_ended(process)) {
		lua_pushboolean(L, false);
		return 1;
	}
	if (tree) {
		procfs_kill_tree(process->pid, (int)signal);
	} else if (kill(process->pid, (int)signal) < 0) {
		int err = errno;

		return push_errno(L, err, "cannot send the signal");
	}
	lua_pushboolean(L, true);
	return 1;
}

static int process_pid(lua_State *L)
{
	lua_pushinteger(L, check_process(L)->pid);
	return 1;
}

static int process_fileno(lua_State *L)
{
	struct process *process = check_process(L);

	if (process->pidfd < 0)
		return push_errno(L, ENOSYS, "no descriptor for a process");
	lua_pushinteger(L, process->pidfd);
	return 1;
}

/*
 * A child that still runs is killed with everything it has started. In a fork of the process that
 * started it, it is no child (ECHILD), and is left alone.
 */
static int process_close(lua_State *L)
{
	struct process *process = to_process(L);

	if (process->closed)
		return 0;
	process->closed = true;
	if (process->ours && !process_ended(process) && !errno) {
		if (process->gate >= 0)
			kill(process->pid, SIGKILL);
		else
			procfs_kill_tree(process->pid, SIGKILL);
		reap(process);
	}
	close_fd(&process->gate);
	close_fd(&process->pidfd);
	return 0;
}

static int process__tostring(lua_State *L)
{
	struct process *process = to_process(L);

	if (process->closed)
		lua_pushliteral(L, "tracefs.process (closed)");
	else
		lua_pushfstring(L, "tracefs.process (%d)", (int)process->pid);
	return 1;
}

/* A list under construction is a userdata, so that a Lua error does not leak it. */
static int pids__gc(lua_State *L)
{
	pid_list_free(luaL_checkudata(L, 1, PIDS));
	return 0;
}

static int push_pids(lua_State *L, int (*collect)(pid_t, struct pid_list *))
{
	lua_Integer pid = luaL_checkinteger(L, 1);
	struct pid_list *list;

	luaL_argcheck(L, pid > 0 && pid <= INT32_MAX, 1, "not a pid");
	list = lua_newuserdatauv(L, sizeof(*list), 0);
	memset(list, 0, sizeof(*list));
	luaL_setmetatable(L, PIDS);
	if (collect((pid_t)pid, list) < 0) {
		int err = errno;

		if (err == ENOENT || err == ESRCH)
			return push_no_process(L, pid);
		return push_errno(L, err, lua_pushfstring(L, "cannot look at process %I", pid));
	}
	lua_createtable(L, (int)list->count, 0);
	for (size_t i = 0; i < list->count; i++) {
		lua_pushinteger(L, list->pids[i]);
		lua_rawseti(L, -2, (lua_Integer)i + 1);
	}
	return 1;
}

static int process_threads(lua_State *L)
{
	return push_pids(L, procfs_threads);
}

static int process_descendants(lua_State *L)
{
	return push_pids(L, procfs_descendants);
}

static int process_in_pid_namespace(lua_State *L)
{
	lua_pushboolean(L, procfs_in_pid_namespace());
	return 1;
}

/* own_thread(): nil when the kernel knows it by a number that cannot be known here */
static int process_own_thread(lua_State *L)
{
	pid_t thread = procfs_own_thread();

	if (thread < 0)
		lua_pushnil(L);
	else
		lua_pushinteger(L, thread);
	return 1;
}

static const luaL_Reg process_methods[] = {
	{ "pid", process_pid },	  { "fileno", process_fileno }, { "release", process_release },
	{ "wait", process_wait }, { "kill", process_kill },	{ "close", process_close },
	{ NULL, NULL },
};

static const luaL_Reg process_meta[] = {
	{ "__gc", process_close },
	{ "__close", process_close },
	{ "__tostring", process__tostring },
	{ NULL, NULL },
};

static const luaL_Reg pids_meta[] = {
	{ "__gc", pids__gc },
	{ NULL, NULL },
};

static const luaL_Reg process_functions[] = {
	{ "spawn", process_spawn },
	{ "watch", process_watch },
	{ "threads", process_threads },
	{ "descendants", process_descendants },
	{ "in_pid_namespace", process_in_pid_namespace },
	{ "own_thread", process_own_thread },
	{ NULL, NULL },
};

void open_process(lua_State *L)
{
	new_class(L, PROCESS, process_methods, process_meta);
	luaL_newmetatable(L, PIDS);
	luaL_setfuncs(L, pids_meta, 0);
	lua_pop(L, 1);
	luaL_setfuncs(L, process_functions, 0);
}
