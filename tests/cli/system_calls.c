/* Loaded with LD_PRELOAD: lists the calls by which data becomes durable and is acknowledged, in their order.

   CALLS_LOG     the file that gets a line for each call
   CALLS_FOLDER  only files below this folder are listed, send of all sockets of IPv4
   CALLS_SHORT   the most bytes that one write to such a file takes
   CALLS_KILL    kill the process once so many bytes are written to such files */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static long written;

static void record(const char *call, const char *path)
{
    char line[PATH_MAX + 64];
    int size = snprintf(line, sizeof line, "%s%s%s\n", call, *path ? " " : "", path);
    long log = syscall(SYS_openat, AT_FDCWD, getenv("CALLS_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    syscall(SYS_write, log, line, size);
    syscall(SYS_close, log);
}

/* Whether an open file is listed; its path. */
static int listed(int descriptor, char *path)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = 0;
    const char *folder = getenv("CALLS_FOLDER");
    return size > 0 && !strncmp(path, folder, strlen(folder));
}

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? atol(text) : LONG_MAX;
}

int fsync(int descriptor)
{
    char path[PATH_MAX];
    if (listed(descriptor, path))
        record("fsync", path);
    return syscall(SYS_fsync, descriptor);
}

int fdatasync(int descriptor)
{
    return fsync(descriptor);
}

int mkdir(const char *path, mode_t mode)
{
    char real[PATH_MAX];
    int status = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (!status && realpath(path, real) && !strncmp(real, getenv("CALLS_FOLDER"), strlen(getenv("CALLS_FOLDER"))))
        record("mkdir", real);
    return status;
}

ssize_t write(int descriptor, const void *data, size_t size)
{
    char path[PATH_MAX];
    if (!listed(descriptor, path))
        return syscall(SYS_write, descriptor, data, size);
    long most = number("CALLS_SHORT"), last = number("CALLS_KILL") - written;
    if ((long)size > most)
        size = most;
    if ((long)size >= last) {
        syscall(SYS_write, descriptor, data, last);
        kill(getpid(), SIGKILL);
    }
    record("write", path);
    ssize_t taken = syscall(SYS_write, descriptor, data, size);
    written += taken > 0 ? taken : 0;
    return taken;
}

ssize_t send(int descriptor, const void *data, size_t size, int flags)
{
    struct sockaddr_storage own;
    socklen_t length = sizeof own;
    /* asyncio wakes itself with a byte on a socket of another family */
    if (!getsockname(descriptor, (struct sockaddr *)&own, &length) && own.ss_family == AF_INET)
        record("send", "");
    return syscall(SYS_sendto, descriptor, data, size, flags, NULL, 0);
}
