/* SPDX-License-Identifier: MIT */
#include "nearest.h"

#include <ctype.h>
#include <string.h>

#define LONGEST 64
#define MOST 3

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Upper case and the kinds of dashes make no difference to who looks for a name. */
static int folded(char c)
{
	return c == '_' ? '-' : tolower((unsigned char)c);
}

/* How many letters must be added, removed or replaced; both words are shorter than LONGEST. */
static unsigned int distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	unsigned int row[LONGEST + 1], corner, above;

	for (size_t j = 0; j <= b_length; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 0; i < a_length; i++) {
		corner = row[0];
		row[0] = (unsigned int)i + 1;
		for (size_t j = 0; j < b_length; j++) {
			above = row[j + 1];
			row[j + 1] = least(corner + (folded(a[i]) != folded(b[j])),
					   least(above, row[j]) + 1);
			corner = above;
		}
	}
	return row[b_length];
}

static bool is_part(const char *part, size_t part_length, const char *word, size_t word_length)
{
	return part_length >= 4 && memmem(word, word_length, part, part_length);
}

struct candidate {
	const char *word;
	size_t length;
	unsigned int score;
};

static void insert(struct candidate best[MOST], struct candidate new)
{
	struct candidate old;

	/* Lists of symbols have some names more than once. */
	for (size_t i = 0; i < MOST && best[i].word; i++) {
		if (best[i].length == new.length && !memcmp(best[i].word, new.word, new.length))
			return;
	}
	for (size_t i = 0; i < MOST; i++) {
		if (best[i].word && best[i].score <= new.score)
			continue;
		old = best[i];
		best[i] = new;
		new = old;
	}
}

void nearest_add(struct strbuf *out, const char *asked, const char *names)
{
	size_t length = strlen(asked), limit = length / 3 > 1 ? length / 3 : 1;
	struct candidate best[MOST] = { 0 }, next;

	if (!length || length >= LONGEST)
		return;
	while (*(names += strspn(names, " \n"))) {
		next = (struct candidate){ .word = names, .length = strcspn(names, " \n") };
		names += next.length;
		if (next.length >= LONGEST)
			continue;
		next.score = distance(asked, length, next.word, next.length);
		if (next.score > 1 && is_part(asked, length, next.word, next.length))
			next.score = 1;
		if (next.score <= limit)
			insert(best, next);
	}
	for (size_t i = 0; i < MOST && best[i].word; i++) {
		const char *between = i + 1 == MOST || !best[i + 1].word ? " or " : ", ";

		strbuf_add_string(out, i ? between : " Did you mean ");
		strbuf_add(out, best[i].word, best[i].length);
	}
	if (best[0].word)
		strbuf_add_char(out, '?');
}
