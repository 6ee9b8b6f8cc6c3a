/* Keeps what is on disk for certain: after each fsync of a file its bytes, of a folder its names.

   Loaded before the C library (LD_PRELOAD). SYNCHRONIZED names the folder of the copies: of a file "f" and its inode,
   of a folder "d" and its inode, with its path and then a line for each name, which follows its inode. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void copy_file(int source, int target)
{
    static char buffer[1 << 16];
    off_t at = 0;
    ssize_t size;

    while ((size = pread(source, buffer, sizeof buffer, at)) > 0) {
        if (write(target, buffer, (size_t)size) != size)
            abort();
        at += size;
    }
}

static void list_folder(const char *path, int target)
{
    DIR *folder = opendir(path);
    struct dirent *entry;

    dprintf(target, "%s\n", path);
    while (folder != NULL && (entry = readdir(folder)) != NULL)
        if (entry->d_type == DT_REG)
            dprintf(target, "%lu %s\n", (unsigned long)entry->d_ino, entry->d_name);
    if (folder != NULL)
        closedir(folder);
}

static void keep(int descriptor)
{
    const char *copies = getenv("SYNCHRONIZED");
    char link[64], path[4096], new[4096], name[4096];
    struct stat found;
    ssize_t size;
    int target;

    if (copies == NULL || fstat(descriptor, &found) != 0)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    size = readlink(link, path, sizeof path - 1);
    if (size < 0)
        return;
    path[size] = 0;
    snprintf(name, sizeof name, "%s/%c%lu", copies, S_ISDIR(found.st_mode) ? 'd' : 'f', (unsigned long)found.st_ino);
    snprintf(new, sizeof new, "%s/.new.%d", copies, getpid());
    target = open(new, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (target < 0)
        abort();
    if (S_ISDIR(found.st_mode))
        list_folder(path, target);
    else
        copy_file(descriptor, target);
    close(target);
    if (rename(new, name) != 0) /* at once: the process may be killed at any moment */
        abort();
}

static int synchronize(const char *name, int descriptor)
{
    static int count;
    const char *cut = getenv("CUT_AT");
    int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
    int result;

    if (cut != NULL && ++count == atoi(cut))
        kill(getpid(), SIGKILL);
    result = next(descriptor);
    if (result == 0)
        keep(descriptor);
    return result;
}

int fsync(int descriptor)
{
    return synchronize("fsync", descriptor);
}

int fdatasync(int descriptor)
{
    return synchronize("fdatasync", descriptor);
}
