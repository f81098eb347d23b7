# The helper of package rbd: a plugin of nbdkit that serves one image of Ceph, and only while it holds the image's exclusive lock.
# plugin/helper.c is the same in C: what is changed here is to be changed there.
#
# What librbd does for it: the lock lies on the image itself, with the address of this very process. An owner that no longer
# watches the image is first put on the cluster's blocklist, and the lock is broken only then: who is on that list writes nothing more, whenever
# it wakes up. The mode RBD_LOCK_MODE_EXCLUSIVE is the one in which an owner that lives hands nothing over when another asks.
#
# It tells what it does in lines on standard error that begin with "rbd: ": "waiting OWNER", "locked", "failed WHY".
#
# Parameters: pool, image; id, conf, keyring if they are not to be the default; wait=1: wait for an owner that lives;
# take=1: take the lock from an owner that lives; patience=SECONDS: end the parent when it has asked for nothing so long.
import errno
import os
import signal
import sys
import threading
import time

import nbdkit

sys.path.append("/usr/lib/python3/dist-packages")  # also if another Python's modules come first

API_VERSION = 2

settings = {}
parent = os.getppid()
cluster = pool = image = None

# For the watch on the parent: requests in progress, and the seconds since there was none.
idle_lock = threading.Lock()
busy = 0
idle = 0

# After how many seconds without a turn on a processor this process ends, before it does anything else: by then the lock may have gone, and
# whoever was kept from writing for that may be let again.
STANDSTILL = 30
alive = 0  # when it last had one, by a clock that goes on while the machine sleeps


def say(what, text=""):
    text = " ".join(str(text).split())
    print(f"rbd: {what} {text}".rstrip(), file=sys.stderr, flush=True)


def fail(why):
    say("failed", why)
    os._exit(1)


def config(key, value):
    settings[key] = value


def thread_model():
    return nbdkit.THREAD_MODEL_PARALLEL


def after_fork():
    try:
        import rados
        import rbd
    except ImportError as e:
        fail(f"{e}: install Debian's package python3-rbd")
    try:
        connect(rados)
    except Exception as e:
        fail(f"the cluster cannot be reached: {reason(e)}")
    try:
        open_image(rados, rbd)
    except Exception as e:
        fail(reason(e))
    global alive
    alive = now()
    threading.Thread(target=watch, args=(float(settings.get("patience", "0")),), daemon=True).start()
    say("locked")


def reason(e):
    text = str(e) or type(e).__name__
    return text.replace("[errno ", "[error ")


def connect(rados):
    global cluster
    conf = {
        "client_mount_timeout": "15",
        # There is a cache above already; and what FLUSH has to write should be little.
        "rbd_cache": "false",
        "rbd_blocklist_on_break_lock": "true",
    }
    # Not rbd_blocklist_expire_seconds: with it set no lock can be broken by librados 16.2 (EINVAL).
    if "keyring" in settings:
        conf["keyring"] = settings["keyring"]
    cluster = rados.Rados(conffile=settings.get("conf", ""), rados_id=settings.get("id", "admin"), conf=conf)
    cluster.connect()


def open_image(rados, rbd):
    global pool, image
    try:
        pool = cluster.open_ioctx(settings["pool"])
    except rados.ObjectNotFound:
        fail(f"there is no pool {settings['pool']}")
    try:
        image = rbd.Image(pool, settings["image"])
    except rbd.ImageNotFound:
        fail(f"there is no image {settings['image']} in pool {settings['pool']}: rbd create --size 100G --image-feature layering,exclusive-lock {settings['pool']}/{settings['image']}")
    if not image.features() & rbd.RBD_FEATURE_EXCLUSIVE_LOCK:
        fail("the image has no exclusive lock: rbd feature enable POOL/IMAGE exclusive-lock")
    told = None
    owners = list(image.lock_get_owners())
    if owners and settings.get("wait") and not settings.get("take"):
        told = holder(owners)
        say("waiting", told)  # now: the first try may take a while
    while True:
        try:
            image.lock_acquire(rbd.RBD_LOCK_MODE_EXCLUSIVE)
            return
        except (rbd.ReadOnlyImage, rbd.ImageBusy, rbd.OSError) as e:
            # Any of these may come of another owner; without one it is another trouble.
            owners = list(image.lock_get_owners())
            if not owners and not settings.get("wait"):
                raise
            if owners and settings.get("take"):
                for o in owners:
                    image.lock_break(rbd.RBD_LOCK_MODE_EXCLUSIVE, o["owner"])
                continue
            who = holder(owners)
            if not settings.get("wait"):
                fail(f"the image is in use by {who}; an owner that died is noticed when its watch ends, by default after 30 s")
            if who != told:
                say("waiting", who)
                told = who
            time.sleep(1)


def holder(owners):
    """Who has the lock, with the address that "rbd lock ls" shows."""
    try:
        lockers = [f"{name} at {address}" for name, _, address in image.list_lockers()["lockers"]]
    except Exception:
        lockers = []
    return ", ".join(lockers or [f"owner {o['owner']}" for o in owners]) or "nobody that is known"


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def live():
    """Ends this process if it stood still for long."""
    if now() - alive > STANDSTILL:
        say("asleep")
        os._exit(1)


def watch(patience):
    """Ends a parent that hangs, if there is a patience: while its helper lives nobody else gets the lock."""
    global idle, alive
    while not patience or idle < patience:
        # Seconds that this process saw go by: it may have been stopped itself.
        time.sleep(1)
        live()
        alive = now()
        with idle_lock:
            idle = 0 if busy else idle + 1
    if os.getppid() == parent:
        say("hangs", f"no request for {idle} s")
        os.kill(parent, signal.SIGKILL)


def cleanup():
    if image is not None:
        image.close()  # gives the lock back, if it is ours
    if pool is not None:
        pool.close()
    if cluster is not None:
        cluster.shutdown()


def open(readonly):
    return 1


def get_size(h):
    return image.size()


def can_write(h):
    return True


def can_flush(h):
    return True


def perform(do):
    """Does what a request asks for; its error is one of those that NBD has."""
    global busy, idle
    live()
    with idle_lock:
        busy, idle = busy + 1, 0
    try:
        return do()
    except Exception as e:
        code = abs(getattr(e, "errno", None) or errno.EIO)
        nbdkit.set_error(code if code in (errno.ESHUTDOWN, errno.ENOSPC) else errno.EIO)
        raise
    finally:
        with idle_lock:
            busy -= 1


def pread(h, buf, offset, flags):
    buf[:] = perform(lambda: image.read(offset, len(buf)))


def pwrite(h, buf, offset, flags):
    perform(lambda: image.write(bytes(buf), offset))


def flush(h, flags):
    perform(image.flush)
