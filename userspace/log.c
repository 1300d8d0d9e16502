// SPDX-License-Identifier: GPL-2.0-or-later
#include "log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

/*
 * Only whole lines enter a ring, so whole lines are all that is ever between
 * tail and head. Positions run freely; their difference is the fill.
 */
struct log_ring {
	_Atomic size_t head __attribute__((aligned(64))); /* the producer's */
	_Atomic uint64_t lost;				  /* since last told */
	_Atomic size_t tail __attribute__((aligned(64))); /* the thread's */
	size_t size;
	char bytes[];
};

#define RINGS_MAX     512
#define SAY_RING_SIZE (64 * 1024)
#define BATCH_MAX     (32 * 1024)
#define NAP_MS	      10   /* lines of this long go out in one write */
#define STOP_MS	      500  /* for what is left at the end */
#define LOST_EVERY_MS 1000 /* between two lines about lost lines */

static struct log_ring *_Atomic rings[RINGS_MAX];
static _Atomic unsigned int nr_rings;
static struct log_ring *say_ring;
static pthread_mutex_t say_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic enum config_log_format say_format;

static pthread_t thread;
static bool is_running;
static pid_t owner; /* of what is in the rings: a fork must not repeat it */
static int wake_fd = -1;
static _Atomic bool is_asleep, must_stop, must_give_up;

/* What is on its way out; survives an interrupted write. */
static struct {
	size_t len, done;
	size_t max; /* a pipe takes PIPE_BUF bytes whole, or not at all */
	char bytes[BATCH_MAX];
} batch;
static uint64_t nr_lost, lost_told_ms;

struct log_ring *log_ring_new(size_t size)
{
	unsigned int slot = atomic_load(&nr_rings);
	struct log_ring *r;

	if (slot == RINGS_MAX || (size & (size - 1)) || size < LOG_LINE_MAX)
		return NULL;
	r = aligned_alloc(64, (sizeof(*r) + size + 63) & ~(size_t)63);
	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->size = size;
	atomic_store(&rings[slot], r);
	atomic_store(&nr_rings, slot + 1);
	return r;
}

/* A system call only when the thread sleeps, which it does for NAP_MS. */
static void wake(void)
{
	uint64_t one = 1;
	ssize_t n;

	if (!atomic_load(&is_asleep) || !atomic_exchange(&is_asleep, false))
		return;
	n = write(wake_fd, &one, sizeof(one));
	(void)n; /* full means awake */
}

bool log_ring_write(struct log_ring *r, const struct log_line *l)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	size_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	size_t at = head & (r->size - 1), first = r->size - at;

	if (r->size - (head - tail) < l->len) {
		atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
		return false;
	}
	if (first > l->len)
		first = l->len;
	memcpy(&r->bytes[at], l->text, first);
	memcpy(r->bytes, l->text + first, l->len - first);
	/*
	 * First the head, then a look at is_asleep; the thread does it the
	 * other way round, all sequentially consistent: one sees the other.
	 */
	atomic_store(&r->head, head + l->len);
	wake();
	return true;
}

/* Moves whole lines from the ring into the batch. */
static void take_lines(struct log_ring *r)
{
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	size_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	size_t len = head - tail, at = tail & (r->size - 1);
	char *out = &batch.bytes[batch.len];
	size_t room = batch.max - batch.len, first;

	if (len > room)
		len = room;
	first = len < r->size - at ? len : r->size - at;
	memcpy(out, &r->bytes[at], first);
	memcpy(out + first, r->bytes, len - first);
	while (len && out[len - 1] != '\n')
		len--;
	batch.len += len;
	atomic_store_explicit(&r->tail, tail + len, memory_order_release);
}

static void count_lost_batch(void)
{
	size_t i;

	for (i = batch.done; i < batch.len; i++)
		nr_lost += batch.bytes[i] == '\n';
}

/* Blocks until all is out, the reader is gone, or log_stop() gives up. */
static void write_batch(void)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	while (batch.done < batch.len && !atomic_load(&must_give_up)) {
		ssize_t n = write(STDERR_FILENO, &batch.bytes[batch.done],
				  batch.len - batch.done);

		if (n >= 0) {
			batch.done += (size_t)n;
		} else if (errno == EAGAIN) {
			poll(&p, 1, 100);
		} else if (errno != EINTR) {
			count_lost_batch();
			batch.done = batch.len;
		}
	}
	if (batch.done == batch.len)
		batch.done = batch.len = 0;
}

/* Writes out all rings once; returns how many bytes there were. */
static size_t drain_rings(void)
{
	unsigned int i, nr = atomic_load(&nr_rings);
	size_t total = 0;

	for (i = 0; i < nr; i++) {
		struct log_ring *r = atomic_load(&rings[i]);
		size_t before;

		do {
			before = batch.len;
			take_lines(r);
			if (batch.len == before)
				break;
			total += batch.len - before;
			if (batch.max - batch.len < LOG_LINE_MAX)
				write_batch();
		} while (!atomic_load(&must_give_up));
		nr_lost += atomic_exchange(&r->lost, 0);
	}
	write_batch();
	return total;
}

static void tell_lost(void)
{
	struct log_line l;

	if (!nr_lost || batch.len ||
	    (clock_ms() - lost_told_ms < LOST_EVERY_MS &&
	     !atomic_load(&must_stop)))
		return;
	log_line_begin(&l, atomic_load(&say_format), LOG_WARNING, "log_lost");
	log_line_number(&l, "lines", nr_lost);
	log_line_end(&l);
	nr_lost = 0;
	lost_told_ms = clock_ms();
	memcpy(batch.bytes, l.text, l.len);
	batch.len = l.len;
	write_batch();
}

static bool may_sleep(void)
{
	unsigned int i, nr = atomic_load(&nr_rings);

	atomic_store(&is_asleep, true);
	for (i = 0; i < nr; i++) {
		struct log_ring *r = atomic_load(&rings[i]);

		if (atomic_load(&r->head) != atomic_load(&r->tail))
			return false;
	}
	return !atomic_load(&must_stop);
}

static void sleep_until_woken(void)
{
	struct pollfd p = { .fd = wake_fd, .events = POLLIN };
	uint64_t count;
	ssize_t n;

	if (may_sleep())
		poll(&p, 1, nr_lost ? LOST_EVERY_MS : -1);
	atomic_store(&is_asleep, false);
	n = read(wake_fd, &count, sizeof(count));
	(void)n; /* it does not block, and only empties */
}

/* A system call for many lines, and none for each of them. */
static void nap(size_t drained)
{
	const struct timespec t = { .tv_nsec = NAP_MS * 1000000 };

	if (drained < BATCH_MAX && !atomic_load(&must_stop))
		nanosleep(&t, NULL);
}

static void *run(void *unused)
{
	size_t drained;
	bool is_last;

	(void)unused;
	pthread_setname_np(pthread_self(), "headgate-log");
	for (;;) {
		is_last = atomic_load(&must_stop);
		drained = drain_rings();
		tell_lost();
		if (atomic_load(&must_give_up) || (is_last && !drained))
			break;
		if (!drained)
			sleep_until_woken();
		nap(drained);
	}
	return NULL;
}

static void do_nothing(int signal_number)
{
	(void)signal_number;
}

/* In a forked process the parent's lines are the parent's to write. */
static void forget_lines(void)
{
	unsigned int i;

	for (i = 0; i < atomic_load(&nr_rings); i++) {
		struct log_ring *r = atomic_load(&rings[i]);

		atomic_store(&r->tail, atomic_load(&r->head));
		atomic_store(&r->lost, 0);
	}
	batch.len = batch.done = 0;
	nr_lost = 0;
}

static int prepare(void)
{
	/* SIGURG interrupts a write that blocks; by default it is ignored */
	const struct sigaction interrupt = { .sa_handler = do_nothing };
	struct stat st;

	if (!say_ring)
		say_ring = log_ring_new(SAY_RING_SIZE);
	if (!say_ring)
		return -ENOMEM;
	if (owner && owner != getpid())
		forget_lines();
	owner = getpid();
	batch.max = BATCH_MAX;
	if (!fstat(STDERR_FILENO, &st) && S_ISFIFO(st.st_mode))
		batch.max = PIPE_BUF;
	sigaction(SIGURG, &interrupt, NULL);
	atomic_store(&must_stop, false);
	atomic_store(&must_give_up, false);
	atomic_store(&is_asleep, false);
	return 0;
}

int log_start(void)
{
	sigset_t all, old;
	int err;

	if (is_running)
		return 0;
	err = prepare();
	if (err)
		return err;
	wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (wake_fd < 0)
		return -errno;
	sigfillset(&all);
	sigdelset(&all, SIGURG);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		close(wake_fd);
		wake_fd = -1;
		return -err;
	}
	is_running = true;
	return 0;
}

static bool join_within(unsigned int ms)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += (long)ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return pthread_timedjoin_np(thread, NULL, &t) == 0;
}

void log_stop(void)
{
	if (!is_running)
		return;
	atomic_store(&must_stop, true);
	atomic_store(&is_asleep, true);
	wake();
	if (!join_within(STOP_MS)) {
		atomic_store(&must_give_up, true);
		do
			pthread_kill(thread, SIGURG);
		while (!join_within(10));
	}
	is_running = false;
	close(wake_fd);
	wake_fd = -1;
}

void log_set_format(enum config_log_format format)
{
	atomic_store(&say_format, format);
}

static void write_now(const struct log_line *l)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
	ssize_t n;

	if (poll(&p, 1, 0) <= 0)
		return;
	n = write(STDERR_FILENO, l->text, l->len);
	(void)n; /* there is nowhere else to say it */
}

void log_say(int priority, const char *format, ...)
{
	struct log_line l;
	char text[1024];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);

	log_line_begin(&l, atomic_load(&say_format), priority, "message");
	log_line_text(&l, "text", span_of_text(text));
	log_line_end(&l);
	if (!is_running) {
		write_now(&l);
		return;
	}
	/* held for a copy of one line; nobody holds it while writing out */
	pthread_mutex_lock(&say_lock);
	log_ring_write(say_ring, &l);
	pthread_mutex_unlock(&say_lock);
}
