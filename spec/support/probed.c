/*
 * What uprobes are put on: functions that are called as often as asked, with known arguments
 * and results.
 *
 *   probed COUNT
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct named {
	const char *name;
	int list[4];
	unsigned long long big;
};

int probed_work(int n, const struct named *named);
int probed_tail(int n);

/* Called through a register that the compiler knows nothing about: not inlined, not changed. */
__attribute__((noinline)) int probed_work(int n, const struct named *named)
{
	__asm__ volatile("" : : "r"(named) : "memory");
	return 3 * n - named->list[3];
}

/* Of this file only: gone from stripped ones. */
static __attribute__((noinline)) int probed_local(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n + 1;
}

__attribute__((noinline)) int probed_tail(int n)
{
	__asm__ volatile("" : "+r"(n));
	return n - 1;
}

int main(int argc, char **argv)
{
	static const struct named named = {
		.name = "a name",
		.list = { 1, -2, 3, 4 },
		.big = 0xffffffffffffffffULL,
	};
	int count = argc > 1 ? atoi(argv[1]) : 1, sum = 0;

	for (int n = 1; n <= count; n++)
		sum += probed_local(probed_tail(probed_work(n, &named)));
	/* one call into the library, of a function that no sanitizer stands in for */
	if (getppid() < 0)
		return 1;
	printf("%d\n", sum);
	return 0;
}
