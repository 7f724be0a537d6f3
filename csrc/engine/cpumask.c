/* SPDX-License-Identifier: MIT */
#include "settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "tracing_cpumask"

static int no_such_cpu(struct instance *instance, unsigned int cpu, const unsigned int *there,
		       int count, struct trace_error *error)
{
	struct strbuf list = { 0 };

	for (int i = 0; i < count; i++)
		strbuf_addf(&list, "%s%u", i ? ", " : "", there[i]);
	error_set(error, EINVAL, "no CPU %u in %s/per_cpu. There are: %s", cpu,
		  instance_dir(instance), list.failed ? "" : list.text);
	strbuf_free(&list);
	return -1;
}

/* The kernel's text of a mask: groups of 8 hexadecimal digits, the highest CPUs first. */
static void mask_text(struct strbuf *out, const unsigned int *cpus, size_t count,
		      unsigned int highest)
{
	for (unsigned int group = highest / 32 + 1; group-- > 0;) {
		uint32_t bits = 0;

		for (size_t i = 0; i < count; i++) {
			if (cpus[i] / 32 == group)
				bits |= UINT32_C(1) << cpus[i] % 32;
		}
		strbuf_addf(out, "%s%08x", out->length ? "," : "", bits);
	}
}

int instance_set_cpus(struct instance *instance, const unsigned int *cpus, size_t count,
		      struct trace_error *error)
{
	struct strbuf text = { 0 };
	unsigned int *there;
	int known, result = 0;

	known = instance_cpus(instance, &there, error);
	if (known < 0)
		return -1;
	for (size_t i = 0; i < count && result == 0; i++) {
		bool is_there = false;

		for (int k = 0; k < known; k++)
			is_there |= there[k] == cpus[i];
		if (!is_there)
			result = no_such_cpu(instance, cpus[i], there, known, error);
	}
	if (result == 0) {
		if (cpus)
			mask_text(&text, cpus, count, there[known - 1]);
		else
			mask_text(&text, there, (size_t)known, there[known - 1]);
		result = text.failed ?
				 error_set(error, ENOMEM, "out of memory") :
				 instance_write(instance, FILE_NAME, text.text, text.length, error);
	}
	free(there);
	strbuf_free(&text);
	return result;
}

static int digit_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

int instance_get_cpus(struct instance *instance, struct strbuf *cpus, struct trace_error *error)
{
	struct strbuf text = { 0 };
	unsigned int digits = 0, cpu = 0;
	const char *at;

	if (instance_read(instance, FILE_NAME, &text, error) < 0) {
		strbuf_free(&text);
		return -1;
	}
	for (at = text.text; *at; at++)
		digits += isxdigit((unsigned char)*at) != 0;
	/* From the last digit, which has the first CPUs. */
	for (at = text.text + text.length; digits && at-- > text.text;) {
		if (!isxdigit((unsigned char)*at))
			continue;
		for (unsigned int bit = 0; bit < 4; bit++) {
			if (digit_value(*at) >> bit & 1)
				strbuf_addf(cpus, "%s%u", cpus->length ? " " : "", cpu + bit);
		}
		cpu += 4;
	}
	strbuf_free(&text);
	return cpus->failed ? error_set(error, ENOMEM, "out of memory") : 0;
}
