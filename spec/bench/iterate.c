/* SPDX-License-Identifier: MIT */
/*
 * The loop that C programs on libtracefs use: empties an instance through
 * tracefs_iterate_raw_events and reads two fields of every record of one event with
 * tep_read_number_field. Prints the events and the CPU time that this took; opening
 * and parsing are outside the time.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tracefs.h>

struct reader {
	int id;
	struct tep_format_field *first;
	struct tep_format_field *second;
	uint64_t count;
	uint64_t sum;
};

static int read_record(struct tep_event *event, struct tep_record *record, int cpu, void *data)
{
	struct reader *reader = data;
	unsigned long long first;
	unsigned long long second;

	(void)cpu;
	if (event->id != reader->id)
		return 0;
	if (tep_read_number_field(reader->first, record->data, &first) ||
	    tep_read_number_field(reader->second, record->data, &second))
		return -1;
	reader->count++;
	reader->sum += first + second;
	return 0;
}

static struct tep_format_field *find_field(struct tep_event *event, const char *name)
{
	struct tep_format_field *field = tep_find_any_field(event, name);

	if (!field) {
		fprintf(stderr, "iterate: %s has no field %s\n", event->name, name);
		exit(1);
	}
	return field;
}

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	struct tracefs_instance *instance;
	struct reader reader = { 0 };
	struct tep_handle *tep;
	struct tep_event *event;
	uint64_t before;
	uint64_t start;
	uint64_t spent;

	if (argc != 6) {
		fputs("usage: iterate INSTANCE SYSTEM EVENT FIELD FIELD\n", stderr);
		return 2;
	}
	instance = tracefs_instance_create(argv[1]);
	if (!instance || tracefs_instance_is_new(instance)) {
		fprintf(stderr, "iterate: there is no instance %s\n", argv[1]);
		if (instance)
			tracefs_instance_destroy(instance);
		return 1;
	}
	tep = tracefs_local_events_system(NULL, (const char *const[]){ argv[2], NULL });
	event = tep ? tep_find_event_by_name(tep, argv[2], argv[3]) : NULL;
	if (!event) {
		fprintf(stderr, "iterate: there is no event %s:%s\n", argv[2], argv[3]);
		return 1;
	}
	reader.id = event->id;
	reader.first = find_field(event, argv[4]);
	reader.second = find_field(event, argv[5]);

	start = thread_ns();
	do {
		before = reader.count;
		if (tracefs_iterate_raw_events(tep, instance, NULL, 0, read_record, &reader) < 0) {
			perror("iterate: tracefs_iterate_raw_events");
			return 1;
		}
	} while (reader.count > before);
	spent = thread_ns() - start;
	printf("events=%llu cpu_ns=%llu sum=%llu\n", (unsigned long long)reader.count,
	       (unsigned long long)spent, (unsigned long long)reader.sum);
	tep_free(tep);
	tracefs_instance_free(instance);
	return 0;
}
