/* SPDX-License-Identifier: MIT */
/*
 * FUZZER FILE...: a fuzzer's inputs, one after the other, without the fuzzer. Prints how many there
 * were. What one of them breaks ends it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What one input may take, on a slow machine and under sanitizers too. */
#define PATIENCE_S 60

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t *read_all(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	uint8_t *bytes = NULL;
	long size;

	if (!file)
		return NULL;
	if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0 &&
	    fseek(file, 0, SEEK_SET) == 0) {
		*length = (size_t)size;
		bytes = malloc(*length + 1);
		if (bytes && fread(bytes, 1, *length, file) != *length) {
			free(bytes);
			bytes = NULL;
		}
	}
	fclose(file);
	return bytes;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		size_t length;
		uint8_t *bytes = read_all(argv[i], &length);

		if (!bytes) {
			perror(argv[i]);
			return 1;
		}
		/* known when it crashes */
		fprintf(stderr, "%s\n", argv[i]);
		alarm(PATIENCE_S);
		LLVMFuzzerTestOneInput(bytes, length);
		free(bytes);
	}
	printf("%d\n", argc - 1);
	return 0;
}
