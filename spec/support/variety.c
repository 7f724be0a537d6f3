/* SPDX-License-Identifier: MIT */
/*
 * A little of everything that the kernel has events for, in a folder of its own:
 *
 *   variety FILES-DIR     files, sockets, signals, timers, processes, threads, memory
 *   variety --offset      where variety_mark() is: "PATH OFFSET", for a uprobe
 *
 * Each part is small; together they take a few hundredths of a second. What this machine does
 * not have (IPv6, O_DIRECT on its file system) is passed over; anything else that fails is
 * an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILE_SIZE 300000
#define BLOCK_SIZE 4096

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "variety: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The uprobe's place: arguments of several types, and a result. */
__attribute__((noinline)) int variety_mark(int number, const char *text, const int *list,
					   const char *nowhere)
{
	__asm__ volatile("" : : "r"(number), "r"(text), "r"(list), "r"(nowhere) : "memory");
	return number * 2;
}

static int print_offset(void)
{
	uintptr_t address = (uintptr_t)variety_mark;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], path[256];

	check(maps, "/proc/self/maps");
	while (fgets(line, sizeof(line), maps)) {
		unsigned long start, end, offset;

		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %255s", &start, &end, &offset, path) ==
			    4 &&
		    address >= start && address < end) {
			printf("%s %#lx\n", path, (unsigned long)address - start + offset);
			fclose(maps);
			return 0;
		}
	}
	fclose(maps);
	return 1;
}

static void marks(void)
{
	static const int list[] = { 1, -2, 3, 4 };

	for (int i = 0; i < 3; i++)
		check(variety_mark(i - 1, "/etc/passwd", list, (const char *)8) == (i - 1) * 2,
		      "variety_mark");
}

static void write_file(const char *name, size_t size)
{
	static char bytes[FILE_SIZE];
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	check(fd >= 0, name);
	memset(bytes, 'x', sizeof(bytes));
	check(write(fd, bytes, size) == (ssize_t)size, "write");
	check(!fsync(fd), "fsync");
	check(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), "posix_fadvise");
	check(pread(fd, bytes, size, 0) == (ssize_t)size, "pread");
	close(fd);
}

static void read_directly(const char *name)
{
	int fd = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC);
	void *block = NULL;

	if (fd < 0)
		return;
	check(!posix_memalign(&block, BLOCK_SIZE, BLOCK_SIZE), "posix_memalign");
	if (pread(fd, block, BLOCK_SIZE, 0) < 0)
		check(errno == EINVAL, "direct read");
	free(block);
	close(fd);
}

static void map_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CLOEXEC);
	char *map = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	check(fd >= 0 && map != MAP_FAILED, "mmap of a file");
	for (size_t i = 0; i < FILE_SIZE; i += BLOCK_SIZE)
		map[i] = 'y';
	check(!msync(map, FILE_SIZE, MS_SYNC), "msync");
	munmap(map, FILE_SIZE);
	close(fd);
}

static void files(const char *dir)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd;

	check(!chdir(dir), dir);
	write_file("one", FILE_SIZE);
	write_file("two", 10);
	check(!rename("two", "three") && !link("three", "four") && !symlink("three", "five"),
	      "rename, link, symlink");
	check(access("five", R_OK) == 0 && access("nothing", R_OK) < 0, "access");
	read_directly("one");
	map_file("one");
	fd = open("one", O_RDWR | O_CLOEXEC);
	check(fd >= 0 && !ftruncate(fd, 100), "ftruncate");
	if (fallocate(fd, 0, 0, FILE_SIZE))
		check(errno == EOPNOTSUPP, "fallocate");
	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BLOCK_SIZE))
		check(errno == EOPNOTSUPP, "fallocate");
	check(!fcntl(fd, F_SETLK, &lock) && !flock(fd, LOCK_EX), "locks");
	close(fd);
	check(!mkdir("six", 0755) && !rmdir("six"), "mkdir, rmdir");
	check(!chmod("one", 0600) && !utimes("one", NULL), "chmod, utimes");
	sync();
	check(!unlink("one") && !unlink("three") && !unlink("four") && !unlink("five"), "unlink");
	sync();
}

/* A connection over the loopback device, and one that nobody accepts. */
static void tcp(int family)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	struct sockaddr *address = family == AF_INET ? (void *)&four : (void *)&six;
	socklen_t length = family == AF_INET ? sizeof(four) : sizeof(six);
	int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0), client, server;
	static char bytes[100000];

	if (listener < 0 || bind(listener, address, length)) {
		check(family == AF_INET6, "bind");
		close(listener);
		return;
	}
	check(!listen(listener, 1) && !getsockname(listener, address, &length), "listen");
	client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(client >= 0 && !connect(client, address, length), "connect");
	server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	check(server >= 0, "accept");
	for (int i = 0; i < 3; i++) {
		ssize_t sent = send(client, bytes, sizeof(bytes), MSG_DONTWAIT);

		check(sent > 0, "send");
		while (sent > 0) {
			ssize_t got = recv(server, bytes, (size_t)sent, 0);

			check(got > 0, "recv");
			sent -= got;
		}
	}
	close(client);
	check(recv(server, bytes, 1, 0) == 0, "end of the connection");
	close(server);
	close(listener);
	client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	check(connect(client, address, length) < 0 && errno == ECONNREFUSED, "refused connect");
	close(client);
}

static void udp(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), small = 1, nobody;
	char bytes[1000] = "";

	check(fd >= 0 && !bind(fd, (void *)&address, length) &&
		      !getsockname(fd, (void *)&address, &length),
	      "udp");
	for (int i = 0; i < 5; i++) {
		check(sendto(fd, bytes, 100, 0, (void *)&address, length) == 100, "sendto");
		check(recv(fd, bytes, 100, 0) == 100, "recv");
	}
	/* More than fits: the rest is dropped. */
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (int i = 0; i < 20; i++)
		sendto(fd, bytes, sizeof(bytes), MSG_DONTWAIT, (void *)&address, length);
	close(fd);
	/* Nobody listens there now. */
	nobody = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sendto(nobody, bytes, 10, 0, (void *)&address, length);
	close(nobody);
}

static void local_sockets(void)
{
	struct {
		struct nlmsghdr header;
		struct rtgenmsg body;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};
	static char answer[16384];
	int pair[2], netlink;

	check(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), "socketpair");
	check(write(pair[0], "x", 1) == 1 && read(pair[1], answer, 1) == 1, "unix sockets");
	close(pair[0]);
	close(pair[1]);
	netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (netlink < 0)
		return;
	if (send(netlink, &request, sizeof(request), 0) == sizeof(request))
		recv(netlink, answer, sizeof(answer), 0);
	close(netlink);
}

static void ignore_signal(int number)
{
	(void)number;
}

static void timers(void)
{
	struct itimerval alarm_soon = { .it_value = { .tv_usec = 2000 } };
	struct itimerspec soon = { .it_value = { .tv_nsec = 1000000 } };
	struct timespec nap = { .tv_nsec = 5000000 };
	struct epoll_event event = { .events = EPOLLIN };
	struct sigaction action = { .sa_handler = ignore_signal };
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), queue;
	uint64_t count;

	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	check(!setitimer(ITIMER_REAL, &alarm_soon, NULL), "setitimer");
	nanosleep(&nap, NULL);
	queue = epoll_create1(EPOLL_CLOEXEC);
	check(timer >= 0 && queue >= 0 && !epoll_ctl(queue, EPOLL_CTL_ADD, timer, &event) &&
		      !timerfd_settime(timer, 0, &soon, NULL) &&
		      epoll_wait(queue, &event, 1, 1000) == 1 &&
		      read(timer, &count, sizeof(count)) == sizeof(count),
	      "timerfd");
	close(timer);
	close(queue);
	kill(getpid(), SIGUSR1);
}

static void memory(void)
{
	size_t size = 1 << 20;
	char *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *block;

	check(map != MAP_FAILED, "mmap");
	for (size_t i = 0; i < size; i += BLOCK_SIZE)
		map[i] = 1;
	check(!mprotect(map, size, PROT_READ), "mprotect");
	map = mremap(map, size, 2 * size, MREMAP_MAYMOVE);
	check(map != MAP_FAILED && !madvise(map, size, MADV_DONTNEED), "mremap, madvise");
	munmap(map, 2 * size);
	block = malloc(64 * BLOCK_SIZE);
	check(block, "malloc");
	memset(block, 1, 64 * BLOCK_SIZE);
	free(block);
}

static void *thread_run(void *argument)
{
	int wake = *(int *)argument;
	uint64_t one = 1;

	prctl(PR_SET_NAME, "variety-thread");
	sched_yield();
	check(write(wake, &one, sizeof(one)) == sizeof(one), "eventfd");
	return NULL;
}

static void tasks(void)
{
	cpu_set_t cpus, all;
	pthread_t thread;
	uint64_t one;
	int wake = eventfd(0, EFD_CLOEXEC), status;
	pid_t child;

	check(wake >= 0, "eventfd");
	errno = pthread_create(&thread, NULL, thread_run, &wake);
	check(!errno, "thread");
	check(read(wake, &one, sizeof(one)) == sizeof(one), "eventfd");
	pthread_join(thread, NULL);
	close(wake);
	child = fork();
	if (!child) {
		execl("/bin/true", "true", (char *)NULL);
		_exit(0);
	}
	check(child > 0 && waitpid(child, &status, 0) == child, "fork and exec");
	child = fork();
	if (!child)
		pause();
	check(child > 0 && !kill(child, SIGKILL) && waitpid(child, &status, 0) == child, "kill");
	/* From one CPU to the next. */
	sched_getaffinity(0, sizeof(all), &all);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &all))
			continue;
		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
		sched_setaffinity(0, sizeof(cpus), &cpus);
	}
	sched_setaffinity(0, sizeof(all), &all);
	setpriority(PRIO_PROCESS, 0, 1);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--offset"))
		return print_offset();
	if (argc != 2) {
		fprintf(stderr, "usage: variety FILES-DIR | --offset\n");
		return 1;
	}
	marks();
	memory();
	timers();
	tasks();
	local_sockets();
	tcp(AF_INET);
	tcp(AF_INET6);
	udp();
	files(argv[1]);
	return 0;
}
