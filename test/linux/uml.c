// A library to preload into user-mode Linux, so that it runs on processors with a large extended
// state (AMX: 11 KiB). Debian's linux.uml keeps 2.6 KiB of a guest process's registers and
// writes them back whole; the host's kernel refuses a state that is cut short (EFAULT), and
// the guest panics as it starts. Here the missing rest is taken from the process itself.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PEEKUSER = 3, GETREGSET = 0x4204, SETREGSET = 0x4205, X86_XSTATE = 0x202 };

long ptrace(int request, ...)
{
	va_list list;
	va_start(list, request);
	pid_t pid = va_arg(list, pid_t);
	void *addr = va_arg(list, void *);
	void *data = va_arg(list, void *);
	va_end(list);

	if (request == SETREGSET && (long)addr == X86_XSTATE) {
		static __thread char state[32768] __attribute__((aligned(64)));
		struct iovec whole = { state, sizeof state }, *part = data;
		if (syscall(SYS_ptrace, GETREGSET, pid, addr, &whole) == 0 && part->iov_len < whole.iov_len) {
			memcpy(state, part->iov_base, part->iov_len);
			return syscall(SYS_ptrace, SETREGSET, pid, addr, &whole);
		}
	}
	if (request >= 1 && request <= PEEKUSER) { // the library's function returns what was peeked at
		long word;
		if (syscall(SYS_ptrace, request, pid, addr, &word) < 0)
			return -1;
		errno = 0;
		return word;
	}
	return syscall(SYS_ptrace, request, pid, addr, data);
}
