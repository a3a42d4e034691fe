/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* A network namespace of this thread's own, and traffic on its loopback. */
#ifndef HARNESS_LIB_LAB_H
#define HARNESS_LIB_LAB_H

#include <netobs/probe.h>

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* Where the thread was; -1: nowhere else. */
struct lab {
	int home;
};

/* Move into a new namespace with its loopback up. */
void lab_enter(struct lab *lab);

/*
 * Move back, once the other threads of the process have ended; the namespace goes away, with
 * all that is in it.
 */
void lab_leave(struct lab *lab);

/* Run a command, such as "ip link add ...", that must succeed. */
__attribute__((format(printf, 1, 2))) void lab_run(const char *format, ...);

/* What a command says; NUL-terminated, cut to the buffer. */
void lab_read(const char *command, char *buf, uint32_t size);

/* Descriptors that this process has open, to see that none leaks. */
int lab_count_fds(void);

/* Wait until there are @n of them: a thread closes its own when it ends. */
void lab_await_fds(int n);

/* @return those of @features, a bit each, that this kernel lacks; the first call takes seconds in a slow guest. */
uint64_t lab_lacks(uint64_t features);

#define LAB_FEATURE(name) (1ULL << NETOBS_FEATURE_##name)

/* Whether this kernel has tcx, without asking netobs. */
bool lab_has_tcx(void);

/* Programs that tcx links put on an interface of this namespace. */
uint32_t lab_count_tcx(const char *interface, bool egress);

/* Neither tcx links nor a clsact qdisc are there. */
bool lab_is_bare(const char *interface);

/* Wait until they have been detached, which a thread may do in the background. */
void lab_await_bare(const char *interface);

/* What work is divided by where an emulated machine would take minutes; else 1. */
uint32_t lab_shrink(void);

/**
 * @n UDP datagrams of 100 bytes to @port of the loopback, one flow. Returns when all of them
 * have come in, which on a loaded machine is some time later than they were sent.
 */
void lab_send(uint16_t port, uint32_t n);

/* A port of the loopback. */
struct sockaddr_in lab_address(uint16_t port);

/* A socket of @type that is bound to *@port of the loopback, or to any if that is 0, which is set. */
int lab_bind(int type, uint16_t *port);

/* A socket of TCP that is bound as lab_bind() does, where up to @backlog connections may wait. */
int lab_listen(uint16_t *port, int backlog);

int lab_connect(uint16_t port);

/* Close a socket of TCP with a RST. */
void lab_reset(int fd);

enum { LAB_BYTES = 128 }; /* of each, from the IP header on */

#endif
