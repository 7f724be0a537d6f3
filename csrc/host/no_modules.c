/* SPDX-License-Identifier: MIT */
#include <stddef.h>

/*
 * The static luatrace loads no shared objects: the C library inside it and the one that they are
 * linked with would be two. The linker (--wrap) has Lua's `require` call these instead of dlopen()
 * and its like, so that it has a reason to give.
 */
void *__wrap_dlopen(const char *path, int mode);
void *__wrap_dlsym(void *library, const char *symbol);
int __wrap_dlclose(void *library);
char *__wrap_dlerror(void);

void *__wrap_dlopen(const char *path, int mode)
{
	(void)path;
	(void)mode;
	return NULL;
}

void *__wrap_dlsym(void *library, const char *symbol)
{
	(void)library;
	(void)symbol;
	return NULL;
}

int __wrap_dlclose(void *library)
{
	(void)library;
	return 0;
}

char *__wrap_dlerror(void)
{
	return "C modules cannot be loaded into the luatrace that is one static file; "
	       "install luatrace and Lua for that";
}
