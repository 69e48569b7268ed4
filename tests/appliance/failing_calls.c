/* Lets one system call of a process fail, or list those that could: see failing_calls.py.

   FAILING_CALL: CALL SHARE-OF-THE-PATH NUMBER ERROR, where ERROR is a number of errno, 0 to read or
   write only half, or -1 to delete the file first. The share is a pattern of fnmatch. FAILING_CALLS_BELOW: the folder of the files that count.
   FAILING_CALLS_LOG: a file to which a line `CALL PATH` is appended for each call. */

#define _GNU_SOURCE
#define _LARGEFILE64_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { AS_IT_IS = -3, GONE = -2, SHORT = -1 };

static pid_t known;
static char below[1024], call[32], share[256], pattern[264];
static int error, list = -1;
static long number, seen;

#define REAL(type, name, ...)                                                                  \
    static type (*real)(__VA_ARGS__);                                                          \
    if (!real) real = dlsym(RTLD_NEXT, name)

static void learn(void) {
    /* A forked process may have got another environment. */
    REAL(int, "open64", const char *, int, ...);
    const char *rule = getenv("FAILING_CALL"), *folder = getenv("FAILING_CALLS_BELOW");
    const char *file = getenv("FAILING_CALLS_LOG");
    known = getpid();
    number = seen = 0;
    snprintf(below, sizeof below, "%s", folder ? folder : "");
    if (rule) sscanf(rule, "%31s %255s %ld %d", call, share, &number, &error);
    snprintf(pattern, sizeof pattern, "*%s*", share);
    list = file && *file ? real(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
}

/* What is to become of a call: AS_IT_IS, SHORT, or a number of errno. */
static int fate(const char *name, const char *path) {
    int before = errno;
    if (known != getpid()) learn();
    if (!*below || strncmp(path, below, strlen(below))) return errno = before, AS_IT_IS;
    if (list >= 0) dprintf(list, "%s %s\n", name, path);
    errno = before;
    if (!number || strcmp(name, call) || fnmatch(pattern, path, 0)) return AS_IT_IS;
    if (__sync_add_and_fetch(&seen, 1) != number) return AS_IT_IS;
    return error > 0 ? error : error ? GONE : SHORT;
}

static int fate_of(const char *name, int handle) {
    char link[64], path[1024];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = before;
    if (size <= 0 || path[0] != '/') return AS_IT_IS;
    path[size] = 0;
    return fate(name, path);
}

#define REFUSED(told, value)                                                                   \
    int is = told;                                                                             \
    if (is > 0) return errno = is, value

int open64(const char *path, int flags, ...) {
    REAL(int, "open64", const char *, int, ...);
    va_list more;
    va_start(more, flags);
    int mode = flags & O_CREAT ? va_arg(more, int) : 0;
    va_end(more);
    REFUSED(fate(flags & O_CREAT ? "create" : "open", path), -1);
    if (is == GONE) unlink(path);
    return real(path, flags, mode);
}

ssize_t read(int handle, void *data, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    REFUSED(fate_of("read", handle), -1);
    return real(handle, data, is == SHORT && size > 1 ? size / 2 : size);
}

ssize_t write(int handle, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    REFUSED(fate_of("write", handle), -1);
    return real(handle, data, is == SHORT && size > 1 ? size / 2 : size);
}

ssize_t pread64(int handle, void *data, size_t size, off64_t offset) {
    REAL(ssize_t, "pread64", int, void *, size_t, off64_t);
    REFUSED(fate_of("pread", handle), -1);
    return real(handle, data, is == SHORT && size > 1 ? size / 2 : size, offset);
}

ssize_t pwrite64(int handle, const void *data, size_t size, off64_t offset) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    REFUSED(fate_of("pwrite", handle), -1);
    return real(handle, data, is == SHORT && size > 1 ? size / 2 : size, offset);
}

ssize_t preadv64v2(int handle, const struct iovec *parts, int count, off64_t offset, int flags) {
    REAL(ssize_t, "preadv64v2", int, const struct iovec *, int, off64_t, int);
    REFUSED(fate_of("pread", handle), -1);
    struct iovec first = parts[0];
    if (is != SHORT || first.iov_len < 2) return real(handle, parts, count, offset, flags);
    first.iov_len /= 2;
    return real(handle, &first, 1, offset, flags);
}

ssize_t preadv64(int handle, const struct iovec *parts, int count, off64_t offset) {
    return preadv64v2(handle, parts, count, offset, 0);
}

int fsync(int handle) {
    REAL(int, "fsync", int);
    REFUSED(fate_of("fsync", handle), -1);
    return real(handle);
}

int posix_fallocate64(int handle, off64_t offset, off64_t size) {
    REAL(int, "posix_fallocate64", int, off64_t, off64_t);
    int is = fate_of("fallocate", handle);
    return is > 0 ? is : real(handle, offset, size);
}

int flock(int handle, int operation) {
    REAL(int, "flock", int, int);
    REFUSED(fate_of("flock", handle), -1);
    return real(handle, operation);
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    REFUSED(fate("rename", to), -1);
    return real(from, to);
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    REFUSED(fate("unlink", path), -1);
    return real(path);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    REFUSED(fate("mkdir", path), -1);
    return real(path, mode);
}

DIR *opendir(const char *path) {
    REAL(DIR *, "opendir", const char *);
    REFUSED(fate("opendir", path), NULL);
    return real(path);
}

struct dirent64 *readdir64(DIR *folder) {
    REAL(struct dirent64 *, "readdir64", DIR *);
    REFUSED(fate_of("readdir", dirfd(folder)), NULL);
    return real(folder);
}

void *mmap64(void *at, size_t size, int protection, int flags, int handle, off64_t offset) {
    REAL(void *, "mmap64", void *, size_t, int, int, int, off64_t);
    if (handle >= 0) {
        REFUSED(fate_of("mmap", handle), MAP_FAILED);
    }
    return real(at, size, protection, flags, handle, offset);
}
