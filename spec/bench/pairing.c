/* SPDX-License-Identifier: MIT */
/*
 * The matching of pairs without Lua: keeps so many starts open, and for each new start stops one,
 * the oldest or one that is picked at random; which, is known some events before ("ahead"), as it
 * is to who reads whole pages of records, or it is not. Prints the pairs and the CPU time that they
 * took.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "pairing.h"

static uint64_t random_bits = 7919;

static uint64_t next_random(void)
{
	random_bits ^= random_bits << 13;
	random_bits ^= random_bits >> 7;
	random_bits ^= random_bits << 17;
	return random_bits;
}

static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Keys as addresses of the kernel's buffers are: so many bytes apart, used again and again. */
static struct key key_of(uint64_t number)
{
	struct key key = { .count = 1 };

	key.parts[0].number = (int64_t)(UINT64_C(0xffff888100000000) + number * 256);
	return key;
}

static void start(struct pairing *pairing, uint64_t number, struct event *event)
{
	struct key key = key_of(number);

	event->ts += 10;
	pairing_see(pairing, event);
	if (!pairing_start(pairing, &key, event, 0, NULL)) {
		fputs("pairing: out of memory\n", stderr);
		exit(1);
	}
}

static void stop(struct pairing *pairing, uint64_t number, struct event *event)
{
	struct key key = key_of(number);
	struct pairing_ended ended;

	event->ts += 10;
	pairing_see(pairing, event);
	if (pairing_stop(pairing, &key, event) && pairing_take_ended(pairing, &ended))
		pairing_release(pairing, ended.number);
}

/* What csrc/binding/ahead.c does for a record that is so many behind the current one. */
#define AHEAD 8

struct order {
	bool at_random;
	bool is_known;
	uint32_t room;
	uint64_t numbers[AHEAD];
	uint32_t hashes[AHEAD];
};

static uint64_t make_number(struct order *order, uint64_t i)
{
	return (order->at_random ? next_random() : i) % order->room;
}

/* The number of the pair @i, and a look at one that comes later. */
static uint64_t next_number(struct order *order, const struct pairing *pairing, uint64_t i)
{
	uint64_t number;
	struct key key;

	if (!order->is_known)
		return make_number(order, i);
	number = order->numbers[i % AHEAD];
	order->numbers[i % AHEAD] = make_number(order, i + AHEAD);
	if (!pairing_is_large(pairing))
		return number;
	key = key_of(order->numbers[i % AHEAD]);
	order->hashes[i % AHEAD] = pairing_hash(pairing, &key, 0);
	pairing_fetch(pairing, order->hashes[i % AHEAD], KEYMAP_FETCH_SLOT);
	pairing_fetch(pairing, order->hashes[(i + 2 * AHEAD - 3) % AHEAD], KEYMAP_FETCH_ENTRY);
	pairing_fetch(pairing, order->hashes[(i + 2 * AHEAD - 6) % AHEAD], KEYMAP_FETCH_NEIGHBOURS);
	return number;
}

int main(int argc, char **argv)
{
	struct pairing_options options = { .parts = 1, .max = UINT32_MAX / 4 };
	struct pairing_counts counts;
	struct event event = { 0 };
	struct pairing *pairing;
	uint64_t pairs;
	uint64_t spent;
	struct order order = { 0 };

	if (argc != 4) {
		fputs("usage: pairing OPEN PAIRS oldest|random|ahead\n", stderr);
		return 2;
	}
	order.is_known = strcmp(argv[3], "ahead") == 0;
	order.at_random = order.is_known || strcmp(argv[3], "random") == 0;
	order.room = (uint32_t)strtoul(argv[1], NULL, 10);
	pairs = strtoull(argv[2], NULL, 10);
	pairing = pairing_create(&options);
	if (!pairing || !order.room) {
		fputs("pairing: out of memory\n", stderr);
		return 1;
	}
	for (uint32_t i = 0; i < order.room; i++)
		start(pairing, i, &event);
	for (uint64_t i = 0; order.is_known && i < AHEAD; i++)
		order.numbers[i] = make_number(&order, i);
	spent = thread_ns();
	for (uint64_t i = 0; i < pairs; i++) {
		uint64_t number = next_number(&order, pairing, i);

		stop(pairing, number, &event);
		/* the key is free for the next */
		start(pairing, number, &event);
	}
	spent = thread_ns() - spent;
	pairing_counts(pairing, &counts);
	printf("events=%llu cpu_ns=%llu open=%llu\n",
	       (unsigned long long)counts.ends[PAIRING_MATCHED], (unsigned long long)spent,
	       (unsigned long long)counts.open);
	pairing_free(pairing);
	return 0;
}
