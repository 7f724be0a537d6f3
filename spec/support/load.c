/* SPDX-License-Identifier: MIT */
/*
 * Loads of known size for the specs and the benchmarks. Each one prints what it did
 * as one line of key=value on stdout and exits 0; when it could not do exactly that,
 * it says why on stderr and exits 1. No load runs longer than its time limit.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT_MAX 1000000000ULL
#define THREADS_MAX 1024
#define SECONDS_MAX 600
#define SOCKETS_MAX 1000
#define NS_PER_SECOND 1000000000ULL
#define ALL_CPUS (-2)
#define ANY_CPU (-1)

struct options {
	long nr;       /* system call that `syscalls` makes */
	int cpu;       /* a CPU, ANY_CPU or ALL_CPUS */
	uint64_t rate; /* a second and thread; 0 for as fast as it goes */
	unsigned int limit;
};

static const char usage[] =
	"usage: load [options] WHAT ...\n"
	"  udp N [SIZE]        N UDP packets of SIZE bytes (default 64) over 127.0.0.1, each received\n"
	"  syscalls N          N system calls with arguments (sequence number from 1, CPU)\n"
	"  markers DIR N       N lines \"load SEQUENCE\" to the trace_marker of the instance DIR\n"
	"  threads K N         K pairs of threads, load-ping and load-pong, passing a byte to and fro N times\n"
	"  naps N              N sleeps of a millisecond, under the name load-naps: N wakeups by a timer\n"
	"  sockets N LEFT      N sockets opened under the name load-sockets, all but LEFT of them closed\n"
	"  tcp N THERE BACK    N TCP connections over 127.0.0.1, one after the other, THERE bytes from\n"
	"                      load-client and BACK from load-server, which closes first\n"
	"  signals N           N times SIGUSR1 from load-sender to its child load-target, each taken\n"
	"  faults N [K]        N pages touched for the first time, and K that the kernel touches in a read,\n"
	"                      under the name load-faults, which has no other page faults\n"
	"  hogs K SECONDS      K threads that do nothing but use a CPU (--cpu all: K on each CPU)\n"
	"  nr                  the number of the system call that `syscalls` makes\n"
	"options:\n"
	"  --name NAME         NAME-ping, NAME-naps, ... in place of load-..., at most 9 bytes\n"
	"  --cpu C|all         on this CPU; all: on each CPU, each doing N (syscalls, hogs)\n"
	"  --rate R            at most R a second and thread (syscalls, markers)\n"
	"  --nr NR             this system call instead of getppid; one that does not exist is traced\n"
	"                      too, and nobody else makes it\n"
	"  --limit SECONDS     give up after this time (default 120)\n";

static const char *load_name = "load";

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("load: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static uint64_t parse_number(const char *text, const char *what, uint64_t max)
{
	char *end;
	unsigned long long value;

	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || end == text || *end || *text == '-' || value > max)
		fail("%s must be a whole number up to %llu, not \"%s\"", what,
		     (unsigned long long)max, text);
	return value;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static void time_is_up(int signal)
{
	static const char message[] = "load: the time limit is over; the load is incomplete\n";
	ssize_t ignored = write(STDERR_FILENO, message, sizeof(message) - 1);

	(void)signal;
	(void)ignored;
	_exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((unsigned int)cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("cannot run on CPU %d: %s", cpu, strerror(errno));
}

/* The name of the calling thread: the load's, and what the thread does. */
static void name_thread(const char *what)
{
	char name[16];

	snprintf(name, sizeof(name), "%s-%s", load_name, what);
	prctl(PR_SET_NAME, name);
}

/* Keeps a loop at its rate, asleep between bursts of about a millisecond. */
struct pace {
	uint64_t start;
	uint64_t rate;
	uint64_t burst;
};

static void pace_start(struct pace *pace, uint64_t rate)
{
	pace->start = now_ns();
	pace->rate = rate;
	pace->burst = rate >= 2000 ? rate / 1000 : 1;
}

static void pace_keep(const struct pace *pace, uint64_t done)
{
	struct timespec until;
	uint64_t due;

	if (!pace->rate || done % pace->burst)
		return;
	due = pace->start + (uint64_t)((double)done / (double)pace->rate * 1e9);
	until.tv_sec = (time_t)(due / NS_PER_SECOND);
	until.tv_nsec = (long)(due % NS_PER_SECOND);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static pthread_t start_thread(void *(*run)(void *), void *argument)
{
	pthread_t thread;
	int err = pthread_create(&thread, NULL, run, argument);

	if (err)
		fail("cannot start a thread: %s", strerror(err));
	return thread;
}

/* --- udp --------------------------------------------------------------------- */

static int loopback_socket(void)
{
	struct timeval patience = { .tv_sec = 5 };
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	/* Connected to itself: packets of others are refused. */
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) ||
	    getsockname(fd, (struct sockaddr *)&address, &length) ||
	    connect(fd, (struct sockaddr *)&address, length) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
		fail("no UDP socket on 127.0.0.1: %s", strerror(errno));
	return fd;
}

static void load_udp(uint64_t count, size_t size)
{
	static char packet[65536];
	int fd = loopback_socket();
	uint64_t i;

	for (i = 1; i <= count; i++) {
		ssize_t got;

		if (send(fd, packet, size, 0) != (ssize_t)size)
			fail("packet %llu: send: %s", (unsigned long long)i, strerror(errno));
		got = recv(fd, packet, sizeof(packet), 0);
		if (got != (ssize_t)size)
			fail("packet %llu: recv: %s", (unsigned long long)i,
			     got < 0 ? strerror(errno) : "another size");
	}
	close(fd);
	printf("packets=%llu size=%zu\n", (unsigned long long)count, size);
}

/* --- tcp --------------------------------------------------------------------- */

struct server {
	int listener;
	uint64_t connections;
	size_t there;
	size_t back;
};

static bool send_bytes(int fd, size_t count)
{
	static const char bytes[65536];

	while (count > 0) {
		ssize_t sent = send(fd, bytes, count < sizeof(bytes) ? count : sizeof(bytes),
				    MSG_NOSIGNAL);

		if (sent <= 0)
			return false;
		count -= (size_t)sent;
	}
	return true;
}

static bool receive_bytes(int fd, size_t count)
{
	char bytes[65536];

	while (count > 0) {
		ssize_t got = recv(fd, bytes, count < sizeof(bytes) ? count : sizeof(bytes), 0);

		if (got <= 0)
			return false;
		count -= (size_t)got;
	}
	return true;
}

static void *serve(void *argument)
{
	const struct server *server = argument;
	uint64_t i;

	name_thread("server");
	for (i = 0; i < server->connections; i++) {
		int fd = accept(server->listener, NULL, NULL);

		if (fd < 0 || !receive_bytes(fd, server->there) || !send_bytes(fd, server->back))
			fail("server: connection %llu: %s", (unsigned long long)i + 1,
			     strerror(errno));
		close(fd);
	}
	return NULL;
}

static void load_tcp(uint64_t count, size_t there, size_t back)
{
	/* close() waits until the other side has acknowledged it: nothing comes behind the load. */
	struct linger linger = { .l_onoff = 1, .l_linger = 5 };
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof(address);
	struct server server = { .connections = count, .there = there, .back = back };
	pthread_t thread;
	char end;
	uint64_t i;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (server.listener < 0 || bind(server.listener, (struct sockaddr *)&address, length) ||
	    getsockname(server.listener, (struct sockaddr *)&address, &length) ||
	    listen(server.listener, 1))
		fail("no TCP socket on 127.0.0.1: %s", strerror(errno));
	thread = start_thread(serve, &server);
	name_thread("client");
	for (i = 0; i < count; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)) ||
		    connect(fd, (struct sockaddr *)&address, length) || !send_bytes(fd, there) ||
		    !receive_bytes(fd, back) || recv(fd, &end, 1, 0) != 0 || close(fd))
			fail("client: connection %llu: %s", (unsigned long long)i + 1,
			     strerror(errno));
	}
	pthread_join(thread, NULL);
	close(server.listener);
	printf("connections=%llu there=%zu back=%zu port=%d pid=%d\n", (unsigned long long)count,
	       there, back, ntohs(address.sin_port), (int)getpid());
}

/* The CPUs that this process may run on; returns how many. */
static unsigned int allowed_cpus(int cpus[CPU_SETSIZE])
{
	unsigned int count = 0;
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		fail("cannot tell the CPUs: %s", strerror(errno));
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((unsigned int)cpu, &set))
			cpus[count++] = cpu;
	return count;
}

/* --- syscalls ---------------------------------------------------------------- */

struct caller {
	pthread_t thread;
	pthread_barrier_t *barrier;
	const struct options *options;
	uint64_t count;
	int cpu;
};

static void *call(void *argument)
{
	const struct caller *caller = argument;
	long nr = caller->options->nr;
	long cpu = caller->cpu;
	struct pace pace;
	uint64_t i;

	name_thread("calls");
	if (caller->options->cpu == ALL_CPUS)
		pin(caller->cpu);
	pthread_barrier_wait(caller->barrier);
	pace_start(&pace, caller->options->rate);
	for (i = 1; i <= caller->count; i++) {
		syscall(nr, i, cpu, 0L, 0L, 0L, 0L);
		pace_keep(&pace, i);
	}
	return NULL;
}

static void load_syscalls(uint64_t count, const struct options *options)
{
	static struct caller callers[CPU_SETSIZE];
	int cpus[CPU_SETSIZE] = { options->cpu };
	unsigned int used = options->cpu == ALL_CPUS ? allowed_cpus(cpus) : 1;
	pthread_barrier_t barrier;
	unsigned int i;
	uint64_t start;

	pthread_barrier_init(&barrier, NULL, used);
	start = now_ns();
	for (i = 0; i < used; i++) {
		callers[i].barrier = &barrier;
		callers[i].options = options;
		callers[i].count = count;
		callers[i].cpu = cpus[i];
		callers[i].thread = start_thread(call, &callers[i]);
	}
	for (i = 0; i < used; i++)
		pthread_join(callers[i].thread, NULL);
	printf("calls=%llu threads=%u each=%llu nr=%ld ns=%llu cpus=",
	       (unsigned long long)(count * used), used, (unsigned long long)count, options->nr,
	       (unsigned long long)(now_ns() - start));
	for (i = 0; i < used; i++)
		printf(i ? ",%d" : "%d", callers[i].cpu);
	putchar('\n');
}

/* --- markers ----------------------------------------------------------------- */

static void load_markers(const char *dir, uint64_t count, const struct options *options)
{
	uint64_t refused = 0;
	struct pace pace;
	char text[64];
	char *path;
	uint64_t i;
	int fd;

	if (asprintf(&path, "%s/trace_marker", dir) < 0)
		fail("out of memory");
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		fail("%s: %s", path, strerror(errno));
	pace_start(&pace, options->rate);
	for (i = 1; i <= count; i++) {
		int length = snprintf(text, sizeof(text), "load %llu", (unsigned long long)i);
		ssize_t written = write(fd, text, (size_t)length);

		/* the kernel's word for a buffer that is full and does not overwrite */
		if (written < 0 && errno == EBADF)
			refused++;
		else if (written != length)
			fail("%s: marker %llu: %s", path, (unsigned long long)i, strerror(errno));
		pace_keep(&pace, i);
	}
	close(fd);
	free(path);
	printf("markers=%llu refused=%llu\n", (unsigned long long)count,
	       (unsigned long long)refused);
}

/* --- threads ----------------------------------------------------------------- */

struct player {
	pthread_t thread;
	const char *name;
	int in;
	int out;
	bool serves;
	uint64_t rounds;
};

static void *play(void *argument)
{
	struct player *player = argument;
	char ball = 'o';
	uint64_t i;

	/* Filters on prev_comm and next_comm can then name exactly these threads. */
	name_thread(player->name);
	for (i = 0; i < player->rounds; i++) {
		if (player->serves && write(player->out, &ball, 1) != 1)
			fail("threads: write: %s", strerror(errno));
		if (read(player->in, &ball, 1) != 1)
			fail("threads: read: %s", strerror(errno));
		if (!player->serves && write(player->out, &ball, 1) != 1)
			fail("threads: write: %s", strerror(errno));
	}
	return NULL;
}

static void load_threads(unsigned int pairs, uint64_t rounds)
{
	static struct player players[2 * THREADS_MAX];
	uint64_t start = now_ns();
	unsigned int i;

	for (i = 0; i < pairs; i++) {
		struct player *ping = &players[2 * i];
		struct player *pong = ping + 1;
		int there[2];
		int back[2];

		if (pipe(there) || pipe(back))
			fail("pipe: %s", strerror(errno));
		*ping = (struct player){ .name = "ping",
					 .in = back[0],
					 .out = there[1],
					 .serves = true,
					 .rounds = rounds };
		*pong = (struct player){ .name = "pong",
					 .in = there[0],
					 .out = back[1],
					 .rounds = rounds };
		ping->thread = start_thread(play, ping);
		pong->thread = start_thread(play, pong);
	}
	for (i = 0; i < 2 * pairs; i++)
		pthread_join(players[i].thread, NULL);
	printf("pairs=%u rounds=%llu ns=%llu\n", pairs, (unsigned long long)rounds,
	       (unsigned long long)(now_ns() - start));
}

/* --- naps --------------------------------------------------------------------- */

/* How often this thread has given its CPU away because it had to wait, by the kernel's count. */
static long waits(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

static void load_naps(uint64_t count)
{
	long waited;
	uint64_t i;

	name_thread("naps");
	waited = waits();
	for (i = 0; i < count; i++) {
		struct timespec left = { .tv_nsec = 1000000 };

		while (nanosleep(&left, &left) && errno == EINTR)
			;
	}
	waited = waits() - waited;
	/* What the end of the process waits for is no nap. */
	prctl(PR_SET_NAME, "load");
	printf("naps=%llu waits=%ld\n", (unsigned long long)count, waited);
}

/* --- sockets ----------------------------------------------------------------- */

static void load_sockets(unsigned int count, unsigned int left)
{
	static int fds[SOCKETS_MAX];
	unsigned int i;

	if (left > count)
		fail("%u of %u sockets cannot be left", left, count);
	name_thread("sockets");
	for (i = 0; i < count; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM, 0);
		if (fds[i] < 0)
			fail("socket %u: %s", i + 1, strerror(errno));
	}
	for (i = left; i < count; i++)
		close(fds[i]);
	printf("sockets=%u left=%u\n", count, left);
}

/* --- signals ------------------------------------------------------------------ */

static void take_signals(uint64_t count, const sigset_t *set, int ready)
{
	uint64_t i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	name_thread("target");
	for (i = 0; i < count; i++)
		if (write(ready, "x", 1) != 1 || sigwaitinfo(set, NULL) != SIGUSR1)
			_exit(1);
	_exit(0);
}

static void load_signals(uint64_t count)
{
	int ready[2];
	sigset_t set;
	uint64_t i;
	pid_t pid;
	char byte;
	int status;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	/* Before there is a child: no signal finds it unprepared. */
	if (pipe(ready) || sigprocmask(SIG_BLOCK, &set, NULL))
		fail("signals: %s", strerror(errno));
	pid = fork();
	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (!pid)
		take_signals(count, &set, ready[1]);
	close(ready[1]);
	name_thread("sender");
	for (i = 0; i < count; i++)
		if (read(ready[0], &byte, 1) != 1 || kill(pid, SIGUSR1))
			fail("signal %llu: there is no target", (unsigned long long)i + 1);
	if (waitpid(pid, &status, 0) != pid || status)
		fail("the target has failed");
	printf("signals=%llu sender=%d target=%d\n", (unsigned long long)count, (int)getpid(),
	       (int)pid);
}

/* --- faults ------------------------------------------------------------------- */

/* A sanitizer's look at memory of its own would be more page faults. */
__attribute__((no_sanitize_address)) static bool
touch(volatile char *pages, size_t size, uint64_t count, uint64_t by_kernel, int zeroes)
{
	uint64_t i;

	for (i = 0; i < count; i++)
		pages[i * size] = 1;
	for (; i < count + by_kernel; i++)
		if (syscall(SYS_read, zeroes, pages + i * size, 1L) != 1)
			return false;
	return true;
}

static void load_faults(uint64_t count, uint64_t by_kernel)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	size_t all = (size_t)(count + by_kernel + 2) * size;
	int zeroes = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	char *pages;
	bool done;

	pages = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (pages == MAP_FAILED || zeroes < 0)
		fail("no memory to touch: %s", strerror(errno));
	/* One fault for each page; refused where there are no huge ones. */
	madvise(pages, all, MADV_NOHUGEPAGE);
	/* All code that runs under the name has run before. */
	name_thread("before");
	done = touch(pages, size, 1, 1, zeroes);
	name_thread("faults");
	done = done && touch(pages + 2 * size, size, count, by_kernel, zeroes);
	prctl(PR_SET_NAME, "load");
	if (!done)
		fail("/dev/zero: %s", strerror(errno));
	munmap(pages, all);
	close(zeroes);
	printf("faults=%llu kernel=%llu\n", (unsigned long long)count,
	       (unsigned long long)by_kernel);
}

/* --- hogs -------------------------------------------------------------------- */

struct hog {
	pthread_t thread;
	uint64_t end;
	int cpu;
};

static void *be_hog(void *argument)
{
	const struct hog *hog = argument;

	if (hog->cpu >= 0)
		pin(hog->cpu);
	while (now_ns() < hog->end)
		;
	return NULL;
}

static void load_hogs(unsigned int count, unsigned int seconds, const struct options *options)
{
	static struct hog hogs[THREADS_MAX];
	int cpus[CPU_SETSIZE] = { ANY_CPU };
	unsigned int places = options->cpu == ALL_CPUS ? allowed_cpus(cpus) : 1;
	uint64_t end = now_ns() + seconds * NS_PER_SECOND;
	unsigned int i;

	if (count > THREADS_MAX / places)
		fail("%u hogs on %u CPUs are too many", count, places);
	count *= places;
	for (i = 0; i < count; i++) {
		hogs[i].end = end;
		hogs[i].cpu = cpus[i % places];
		hogs[i].thread = start_thread(be_hog, &hogs[i]);
	}
	for (i = 0; i < count; i++)
		pthread_join(hogs[i].thread, NULL);
	printf("hogs=%u seconds=%u\n", count, seconds);
}

/* --- command line ------------------------------------------------------------ */

static int parse_cpu(const char *text)
{
	if (!strcmp(text, "all"))
		return ALL_CPUS;
	return (int)parse_number(text, "--cpu", CPU_SETSIZE - 1);
}

static int parse_options(int argc, char **argv, struct options *options)
{
	static const struct option known[] = {
		{ "cpu", required_argument, NULL, 'c' },
		{ "rate", required_argument, NULL, 'r' },
		{ "nr", required_argument, NULL, 'n' },
		{ "limit", required_argument, NULL, 'l' },
		{ "name", required_argument, NULL, 'N' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int option;

	while ((option = getopt_long(argc, argv, "h", known, NULL)) != -1) {
		switch (option) {
		case 'c':
			options->cpu = parse_cpu(optarg);
			break;
		case 'r':
			options->rate = parse_number(optarg, "--rate", COUNT_MAX);
			break;
		case 'n':
			options->nr = (long)parse_number(optarg, "--nr", INT32_MAX / 2);
			break;
		case 'l':
			options->limit = (unsigned int)parse_number(optarg, "--limit", SECONDS_MAX);
			break;
		case 'N':
			if (strlen(optarg) > 9)
				fail("--name must have at most 9 bytes, not \"%s\"", optarg);
			load_name = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	return optind;
}

int main(int argc, char **argv)
{
	struct options options = { .nr = SYS_getppid, .cpu = ANY_CPU, .limit = 120 };
	int first = parse_options(argc, argv, &options);
	const char *what = argv[first] ? argv[first] : "";
	char **args = argv + first + 1;
	int count = argc - first - 1;

	signal(SIGALRM, time_is_up);
	alarm(options.limit);
	/* Threads inherit it. */
	if (options.cpu >= 0)
		pin(options.cpu);

	if (!strcmp(what, "udp") && (count == 1 || count == 2)) {
		load_udp(parse_number(args[0], "the number of packets", COUNT_MAX),
			 count == 2 ? parse_number(args[1], "the size", 65507) : 64);
	} else if (!strcmp(what, "syscalls") && count == 1) {
		load_syscalls(parse_number(args[0], "the number of calls", COUNT_MAX), &options);
	} else if (!strcmp(what, "markers") && count == 2) {
		load_markers(args[0], parse_number(args[1], "the number of markers", COUNT_MAX),
			     &options);
	} else if (!strcmp(what, "threads") && count == 2) {
		load_threads((unsigned int)parse_number(args[0], "the number of pairs",
							THREADS_MAX),
			     parse_number(args[1], "the number of rounds", COUNT_MAX));
	} else if (!strcmp(what, "naps") && count == 1) {
		load_naps(parse_number(args[0], "the number of naps", COUNT_MAX));
	} else if (!strcmp(what, "sockets") && count == 2) {
		load_sockets((unsigned int)parse_number(args[0], "the number of sockets",
							SOCKETS_MAX),
			     (unsigned int)parse_number(args[1], "how many are left", SOCKETS_MAX));
	} else if (!strcmp(what, "tcp") && count == 3) {
		load_tcp(parse_number(args[0], "the number of connections", COUNT_MAX),
			 parse_number(args[1], "the bytes there", COUNT_MAX),
			 parse_number(args[2], "the bytes back", COUNT_MAX));
	} else if (!strcmp(what, "signals") && count == 1) {
		load_signals(parse_number(args[0], "the number of signals", COUNT_MAX));
	} else if (!strcmp(what, "faults") && (count == 1 || count == 2)) {
		load_faults(parse_number(args[0], "the number of faults", COUNT_MAX),
			    count == 2 ? parse_number(args[1], "the number of faults", COUNT_MAX) :
					 0);
	} else if (!strcmp(what, "hogs") && count == 2) {
		load_hogs((unsigned int)parse_number(args[0], "the number of hogs", THREADS_MAX),
			  (unsigned int)parse_number(args[1], "the seconds", SECONDS_MAX),
			  &options);
	} else if (!strcmp(what, "nr") && count == 0) {
		printf("nr=%ld\n", options.nr);
	} else {
		fputs(usage, stderr);
		return 2;
	}
	/* A closed stdout must not look like a load that was made and told. */
	return fflush(stdout) ? 1 : 0;
}
