/* SPDX-License-Identifier: MIT */
/*
 * What KernelShark's library makes of a trace file: how many records it has of each CPU, as
 * lines "CPU COUNT". Exits with 1 when it cannot load the file.
 */
#include <kernelshark/libkshark.h>
#include <stdio.h>
#include <stdlib.h>

#define CPUS 4096

int main(int argc, char **argv)
{
	static unsigned long counts[CPUS];
	struct kshark_context *context = NULL;
	struct kshark_entry **entries = NULL;
	ssize_t count;
	int stream;

	if (argc != 2 || !kshark_instance(&context))
		return 2;
	stream = kshark_open(context, argv[1]);
	if (stream < 0) {
		fprintf(stderr, "kshark: cannot open %s: %d\n", argv[1], stream);
		return 1;
	}
	count = kshark_load_entries(context, stream, &entries);
	if (count < 0) {
		fprintf(stderr, "kshark: cannot load %s: %zd\n", argv[1], count);
		return 1;
	}
	for (ssize_t i = 0; i < count; i++) {
		/* it puts losses in between as entries of its own, with negative events */
		if (entries[i]->event_id >= 0 && entries[i]->cpu >= 0 && entries[i]->cpu < CPUS)
			counts[entries[i]->cpu]++;
		free(entries[i]);
	}
	free(entries);
	for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
		if (counts[cpu])
			printf("%u %lu\n", cpu, counts[cpu]);
	}
	kshark_close(context, stream);
	kshark_free(context);
	return 0;
}
