/* A disk that fails now and then: of the calls that write or sync the log of a node, one in many fails, some of them
 * half-way. If COURIER_HANG names a file, nothing fails, and syncs of the log wait while that file exists. To be
 * loaded before the C library (LD_PRELOAD). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static unsigned long calls;

static int is_log(int file)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return strstr(path, "/log/") != NULL;
}

static int fails(int file, unsigned long every)
{
    if (getenv("COURIER_HANG") || !is_log(file))
        return 0;
    unsigned long call = __sync_add_and_fetch(&calls, 1) + (unsigned long)getpid();
    return (call * 2654435761u >> 7) % every == 0;
}

int fdatasync(int file)
{
    int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
    const char *hang = getenv("COURIER_HANG");
    while (hang && access(hang, F_OK) == 0 && is_log(file))
        usleep(20000);
    if (fails(file, 150)) {
        errno = EIO;
        return -1;
    }
    return real(file);
}

int fsync(int file)
{
    int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
    if (fails(file, 12)) {
        errno = EIO;
        return -1;
    }
    return real(file);
}

ssize_t write(int file, const void *bytes, size_t count)
{
    ssize_t (*real)(int, const void *, size_t) = dlsym(RTLD_NEXT, "write");
    if (count > 64 && fails(file, 200)) {
        real(file, bytes, count / 2);
        errno = ENOSPC;
        return -1;
    }
    return real(file, bytes, count);
}
