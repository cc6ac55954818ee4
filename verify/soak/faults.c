/* Loaded into `daybook dev` with LD_PRELOAD: steps its wall clock, fills its disk, slows its disk.
 *
 * The file that SOAK_FAULTS names holds struct faults, which soak.py writes. Only regular files are affected. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct faults {
    volatile int64_t clock_ns; /* how far the wall clock was set */
    volatile int64_t is_full;  /* writes that grow a file fail with ENOSPC */
    volatile int64_t slow_ms;  /* how much longer a flush takes */
};

static const struct faults none;
static const struct faults *faults = &none;

__attribute__((constructor)) static void open_faults(void) {
    const char *path = getenv("SOAK_FAULTS");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) faults = mapped;
    close(file);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = REAL(clock_gettime);
    int result = real(clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) && faults->clock_ns) {
        int64_t ns = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + faults->clock_ns;
        time->tv_sec = ns / 1000000000;
        time->tv_nsec = ns % 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

/* Whether the disk is full for this write. */
static int is_refused(int file, off_t end) {
    struct stat found;
    if (!faults->is_full || fstat(file, &found) || !S_ISREG(found.st_mode)) return 0;
    return end > found.st_size;
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = REAL(pwrite64);
    if (is_refused(file, offset + (off_t)count)) return errno = ENOSPC, -1;
    return real(file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return pwrite64(file, bytes, count, offset);
}

ssize_t write(int file, const void *bytes, size_t count) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = REAL(write);
    off_t offset = faults->is_full ? lseek(file, 0, SEEK_CUR) : -1;
    if (offset >= 0 && is_refused(file, offset + (off_t)count)) return errno = ENOSPC, -1;
    return real(file, bytes, count);
}

static void flush_slowly(void) {
    int64_t ms = faults->slow_ms;
    struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    if (ms) nanosleep(&pause, NULL);
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = REAL(fsync);
    flush_slowly();
    return real(file);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = REAL(fdatasync);
    flush_slowly();
    return real(file);
}
