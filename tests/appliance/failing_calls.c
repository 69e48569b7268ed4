/* Lets one system call of a process fail, or list those that could: see failing_calls.py.

   FAILING_CALL: CALL SHARE-OF-THE-PATH NUMBER ERROR, where ERROR is a number of errno, 0 to read or
   write only half, or -1 to delete the file first. The share is a pattern of fnmatch.
   FAILING_CALLS_BELOW: the folder of the files that count. What is no file has a path there too:
   `system/socket/LOCAL/PEER` with the ports of a socket, `system/memory`, `system/thread` and
   `system/process/PROGRAM`. FAILING_CALLS_LOG: a file to which a line `CALL PATH` is appended for
   each call. */

#define _GNU_SOURCE
#define _LARGEFILE64_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <arpa/inet.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
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

static int fate_in_system(const char *name, const char *what) {
    char path[1400];
    if (known != getpid()) {
        /* A forked process gets its environment later. */
        if (strstr(what, "memory")) return AS_IT_IS;
        learn();
    }
    if (!*below) return AS_IT_IS;
    snprintf(path, sizeof path, "%ssystem/%s", below, what);
    return fate(name, path);
}

static int port_of(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
}

/* The fate of a call on a socket. `to`: the address to which a call connects it. */
static int fate_of_socket(const char *name, int handle, const struct sockaddr *to) {
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t size = sizeof own, peer_size = sizeof peer;
    char what[256];
    int before = errno;
    getsockname(handle, (struct sockaddr *)&own, &size);
    if (!to && !getpeername(handle, (struct sockaddr *)&peer, &peer_size)) to = (void *)&peer;
    errno = before;
    if (own.ss_family == AF_UNIX) {
        const char *file = to ? ((const struct sockaddr_un *)to)->sun_path : "";
        const char *last = strrchr(file, '/');
        if (!last) return AS_IT_IS; /* a pair within the program */
        snprintf(what, sizeof what, "socket/0/%s", last + 1);
    } else if (own.ss_family == AF_INET || own.ss_family == AF_INET6)
        snprintf(what, sizeof what, "socket/%d/%d", port_of((void *)&own), to ? port_of(to) : 0);
    else return AS_IT_IS;
    return fate_in_system(name, what);
}

static int fate_of(const char *name, int handle) {
    char link[64], path[1024];
    int before = errno;
    if (known != getpid()) learn();
    if (!*below) return AS_IT_IS;
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t size = readlink(link, path, sizeof path - 1);
    errno = before;
    if (size <= 0) return AS_IT_IS;
    path[size] = 0;
    if (!strncmp(path, "socket:", 7))
        return fate_of_socket(strcmp(name, "read") ? "send" : "recv", handle, NULL);
    return path[0] == '/' ? fate(name, path) : AS_IT_IS;
}

/* A connection that has failed stays so. */
static int broken(int is, int handle) {
    if (is == ECONNRESET || is == EPIPE || is == ETIMEDOUT) shutdown(handle, SHUT_RDWR);
    return is;
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

enum { LARGE = 512 << 10 };

void *mmap64(void *at, size_t size, int protection, int flags, int handle, off64_t offset) {
    REAL(void *, "mmap64", void *, size_t, int, int, int, off64_t);
    if (handle >= 0) {
        REFUSED(fate_of("mmap", handle), MAP_FAILED);
    } else if (size >= LARGE) {
        REFUSED(fate_in_system("mmap", "memory"), MAP_FAILED);
    }
    return real(at, size, protection, flags, handle, offset);
}

void *mmap(void *at, size_t size, int protection, int flags, int handle, off_t offset) {
    return mmap64(at, size, protection, flags, handle, offset);
}

/* Memory. glibc's own names are used, because dlsym allocates. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    if (size >= LARGE) {
        REFUSED(fate_in_system("malloc", "memory"), NULL);
    }
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    if (count * size >= LARGE) {
        REFUSED(fate_in_system("malloc", "memory"), NULL);
    }
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size) {
    if (size >= LARGE) {
        REFUSED(fate_in_system("malloc", "memory"), NULL);
    }
    return __libc_realloc(old, size);
}

int posix_memalign(void **found, size_t alignment, size_t size) {
    if (size >= LARGE) {
        int is = fate_in_system("malloc", "memory");
        if (is > 0) return is;
    }
    *found = __libc_memalign(alignment, size);
    return *found ? 0 : ENOMEM;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument) {
    REAL(int, "pthread_create", pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int is = fate_in_system("thread", "thread");
    return is > 0 ? is : real(thread, attributes, run, argument);
}

pid_t fork(void) {
    REAL(pid_t, "fork", void);
    REFUSED(fate_in_system("fork", "process/"), -1);
    return real();
}

pid_t vfork(void) { /* A function that calls vfork must not return in the child. */
    return fork();
}

int execve(const char *program, char *const arguments[], char *const environment[]) {
    REAL(int, "execve", const char *, char *const *, char *const *);
    char what[300];
    const char *last = strrchr(program, '/');
    snprintf(what, sizeof what, "process/%.250s", last ? last + 1 : program);
    REFUSED(fate_in_system("exec", what), -1);
    return real(program, arguments, environment);
}

int socket(int domain, int type, int protocol) {
    REAL(int, "socket", int, int, int);
    REFUSED(fate_in_system("socket", "socket/0/0"), -1);
    return real(domain, type, protocol);
}

int connect(int handle, const struct sockaddr *to, socklen_t size) {
    REAL(int, "connect", int, const struct sockaddr *, socklen_t);
    REFUSED(fate_of_socket("connect", handle, to), -1);
    return real(handle, to, size);
}

int accept4(int handle, struct sockaddr *peer, socklen_t *size, int flags) {
    REAL(int, "accept4", int, struct sockaddr *, socklen_t *, int);
    REFUSED(fate_of_socket("accept", handle, NULL), -1);
    return real(handle, peer, size, flags);
}

ssize_t send(int handle, const void *data, size_t size, int flags) {
    REAL(ssize_t, "send", int, const void *, size_t, int);
    REFUSED(broken(fate_of_socket("send", handle, NULL), handle), -1);
    return real(handle, data, is == SHORT && size > 1 ? size / 2 : size, flags);
}

ssize_t sendmsg(int handle, const struct msghdr *message, int flags) {
    REAL(ssize_t, "sendmsg", int, const struct msghdr *, int);
    REFUSED(broken(fate_of_socket("send", handle, NULL), handle), -1);
    struct msghdr first = *message;
    if (is != SHORT || first.msg_iovlen < 2) return real(handle, message, flags);
    first.msg_iovlen /= 2;
    return real(handle, &first, flags);
}

ssize_t recv(int handle, void *data, size_t size, int flags) {
    REAL(ssize_t, "recv", int, void *, size_t, int);
    REFUSED(broken(fate_of_socket("recv", handle, NULL), handle), -1);
    return real(handle, data, is == SHORT && size > 1 ? size / 2 : size, flags);
}

int poll(struct pollfd *handles, nfds_t count, int timeout) {
    REAL(int, "poll", struct pollfd *, nfds_t, int);
    if (count) {
        REFUSED(fate_of_socket("poll", handles[0].fd, NULL), -1);
    }
    return real(handles, count, timeout);
}

int epoll_wait(int handle, struct epoll_event *events, int most, int timeout) {
    REAL(int, "epoll_wait", int, struct epoll_event *, int, int);
    REFUSED(fate_in_system("epoll", "epoll"), -1);
    return real(handle, events, most, timeout);
}
