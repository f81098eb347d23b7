// The helper of package rbd in C: a plugin of nbdkit that does what ../helper.py does, in the same order and with the same words, which is
// described there, and copies less on the way. What is changed here is to be changed there.

#define _GNU_SOURCE
#define NBDKIT_API_VERSION 2
#include <nbdkit-plugin.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rados/librados.h>
#include <rbd/librbd.h>

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

// After how many seconds without a turn on a processor this process ends, before it does anything else.
#define STANDSTILL 30

enum { maxOwners = 16, maxText = 4096 };

static struct {
	char *pool, *image, *id, *conf, *keyring;
	bool wait, take;
	long patience; // seconds; 0: for ever
} settings;

static pid_t parent;
static rados_t cluster;
static rados_ioctx_t pool;
static rbd_image_t image;

// For the watch on the parent: requests in progress, and whether there was one since it looked.
static atomic_int busy;
static atomic_bool asked;

// When this process last had a turn, by a clock that goes on while the machine sleeps (seconds).
static atomic_llong alive;

__attribute__((format(printf, 1, 2)))
static void say(const char *format, ...)
{
	char text[maxText];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	fprintf(stderr, "rbd: %s\n", text);
	fflush(stderr);
}

#define fail(...) (say("failed " __VA_ARGS__), _exit(1))

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec;
}

static int config(const char *key, const char *value)
{
	char **text = !strcmp(key, "pool") ? &settings.pool : !strcmp(key, "image") ? &settings.image : !strcmp(key, "id") ? &settings.id
		: !strcmp(key, "conf") ? &settings.conf : !strcmp(key, "keyring") ? &settings.keyring : NULL;
	if (text)
		return (*text = strdup(value)) ? 0 : -1;
	if (!strcmp(key, "wait"))
		settings.wait = true;
	else if (!strcmp(key, "take"))
		settings.take = true;
	else if (!strcmp(key, "patience"))
		settings.patience = atol(value);
	else {
		nbdkit_error("%s means nothing", key);
		return -1;
	}
	return 0;
}

static int config_complete(void)
{
	if (!settings.pool || !settings.image) {
		nbdkit_error("pool and image are wanted");
		return -1;
	}
	return 0;
}

static int set(const char *key, const char *value) { return rados_conf_set(cluster, key, value); }

static void reach(void)
{
	int r;
	if ((r = rados_create(&cluster, settings.id ? settings.id : "admin")) < 0
		|| (r = rados_conf_read_file(cluster, settings.conf)) < 0
		|| (r = set("client_mount_timeout", "15")) < 0
		// There is a cache above already; and what FLUSH has to write should be little.
		|| (r = set("rbd_cache", "false")) < 0
		// What is written stays what it is until the call returns.
		|| (r = set("rbd_disable_zero_copy_writes", "false")) < 0
		// Not rbd_blocklist_expire_seconds: with it set no lock can be broken by librados 16.2 (EINVAL).
		|| (r = set("rbd_blocklist_on_break_lock", "true")) < 0
		|| (settings.keyring && (r = set("keyring", settings.keyring)) < 0)
		|| (r = rados_connect(cluster)) < 0)
		fail("the cluster cannot be reached: %s", strerror(-r));
}

static void open_image(void)
{
	int r = rados_ioctx_create(cluster, settings.pool, &pool);
	if (r == -ENOENT)
		fail("there is no pool %s", settings.pool);
	if (r < 0)
		fail("pool %s: %s", settings.pool, strerror(-r));
	r = rbd_open(pool, settings.image, &image, NULL);
	if (r == -ENOENT)
		fail("there is no image %s in pool %s: rbd create --size 100G --image-feature layering,exclusive-lock %s/%s",
			settings.image, settings.pool, settings.pool, settings.image);
	if (r < 0)
		fail("image %s: %s", settings.image, strerror(-r));
	uint64_t features;
	if ((r = rbd_get_features(image, &features)) < 0)
		fail("image %s: %s", settings.image, strerror(-r));
	if (!(features & RBD_FEATURE_EXCLUSIVE_LOCK))
		fail("the image has no exclusive lock: rbd feature enable POOL/IMAGE exclusive-lock");
}

// Lists the owners of the lock, and returns how many they are.
static size_t list_owners(char *owners[maxOwners])
{
	rbd_lock_mode_t mode;
	size_t n = maxOwners;
	int r = rbd_lock_get_owners(image, &mode, owners, &n);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		fail("the owner of the lock is not known: %s", strerror(-r));
	return n;
}

// Says who has the lock, with the address that "rbd lock ls" shows.
static void holder(char *owners[], size_t n, char text[maxText])
{
	char tag[maxText], clients[maxText], cookies[maxText], addresses[maxText];
	size_t tags = sizeof tag, c = sizeof clients, k = sizeof cookies, a = sizeof addresses;
	int exclusive;
	ssize_t lockers = rbd_list_lockers(image, &exclusive, tag, &tags, clients, &c, cookies, &k, addresses, &a);
	size_t used = 0;
	text[0] = 0;
	const char *client = clients, *address = addresses;
	for (ssize_t i = 0; i < lockers && used < maxText; i++) {
		used += snprintf(text + used, maxText - used, "%s%s at %s", i ? ", " : "", client, address);
		client += strlen(client) + 1;
		address += strlen(address) + 1;
	}
	for (size_t i = 0; i < n && lockers <= 0 && used < maxText; i++)
		used += snprintf(text + used, maxText - used, "%sowner %s", i ? ", " : "", owners[i]);
	if (!text[0])
		strcpy(text, "nobody that is known");
}

static void take_lock(void)
{
	char told[maxText] = "", who[maxText], *owners[maxOwners];
	size_t n = list_owners(owners);
	if (n && settings.wait && !settings.take) {
		holder(owners, n, told);
		say("waiting %s", told); // now: the first try may take a while
	}
	rbd_lock_get_owners_cleanup(owners, n);
	for (;;) {
		int r = rbd_lock_acquire(image, RBD_LOCK_MODE_EXCLUSIVE);
		if (r == 0)
			return;
		// Any error may come of another owner; without one it is another trouble.
		n = list_owners(owners);
		if (!n && !settings.wait)
			fail("the lock: %s", strerror(-r));
		if (n && settings.take) {
			for (size_t i = 0; i < n; i++)
				if ((r = rbd_lock_break(image, RBD_LOCK_MODE_EXCLUSIVE, owners[i])) < 0)
					fail("the lock cannot be taken: %s", strerror(-r));
			rbd_lock_get_owners_cleanup(owners, n);
			continue;
		}
		holder(owners, n, who);
		rbd_lock_get_owners_cleanup(owners, n);
		if (!settings.wait)
			fail("the image is in use by %s; an owner that died is noticed when its watch ends, by default after 30 s", who);
		if (strcmp(who, told)) {
			say("waiting %s", who);
			strcpy(told, who);
		}
		sleep(1);
	}
}

static void live(void)
{
	if (now() - atomic_load(&alive) > STANDSTILL) {
		say("asleep");
		_exit(1);
	}
}

static void *watch(void *unused)
{
	(void)unused;
	for (long idle = 0; !settings.patience || idle < settings.patience;) {
		// Seconds that this process saw go by: it may have been stopped itself.
		sleep(1);
		live();
		atomic_store(&alive, now());
		idle = atomic_exchange(&asked, false) || atomic_load(&busy) ? 0 : idle + 1;
	}
	if (getppid() == parent) {
		say("hangs no request for %ld s", settings.patience);
		kill(parent, SIGKILL);
	}
	return NULL;
}

static int after_fork(void)
{
	parent = getppid();
	reach();
	open_image();
	take_lock();
	atomic_store(&alive, now());
	pthread_t thread;
	int r = pthread_create(&thread, NULL, watch, NULL);
	if (r)
		fail("no thread: %s", strerror(r));
	pthread_detach(thread);
	say("locked");
	return 0;
}

static void cleanup(void)
{
	if (image)
		rbd_close(image); // gives the lock back, if it is ours
	if (pool)
		rados_ioctx_destroy(pool);
	if (cluster)
		rados_shutdown(cluster);
}

static void *open_connection(int readonly)
{
	(void)readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t get_size(void *handle)
{
	(void)handle;
	uint64_t size;
	int r = rbd_get_size(image, &size);
	if (r < 0) {
		nbdkit_error("size: %s", strerror(-r));
		return -1;
	}
	return size;
}

static void begin(void)
{
	live();
	atomic_fetch_add(&busy, 1);
	atomic_store(&asked, true);
}

// Ends a request with the result of librbd; an error is one of those that NBD has.
static int end(const char *what, ssize_t r)
{
	atomic_fetch_sub(&busy, 1);
	if (r >= 0)
		return 0;
	nbdkit_error("%s: %s", what, strerror(-r));
	nbdkit_set_error(r == -ESHUTDOWN || r == -ENOSPC ? -r : EIO);
	return -1;
}

static int read_some(void *handle, void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle, (void)flags;
	begin();
	ssize_t r = rbd_read(image, offset, count, buf);
	return end("read", r >= 0 && r != count ? -EIO : r);
}

static int write_some(void *handle, const void *buf, uint32_t count, uint64_t offset, uint32_t flags)
{
	(void)handle, (void)flags;
	begin();
	return end("write", rbd_write(image, offset, count, buf));
}

static int flush_all(void *handle, uint32_t flags)
{
	(void)handle, (void)flags;
	begin();
	return end("flush", rbd_flush(image));
}

static struct nbdkit_plugin plugin = {
	.name = "tansyrbd",
	.longname = "an image of Ceph, for Tansy",
	.config = config,
	.config_complete = config_complete,
	.after_fork = after_fork,
	.cleanup = cleanup,
	.open = open_connection,
	.get_size = get_size,
	.pread = read_some,
	.pwrite = write_some,
	.flush = flush_all,
};

NBDKIT_REGISTER_PLUGIN(plugin)
