/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * Reports of the state of a service to systemd(1): sd_notify(3). The protocol is a datagram,
 * which systemd guarantees to be stable; libsystemd would load liblzma, libzstd and libgcrypt.
 */
#ifndef NETOBS_SERVICE_CONTROL_NOTIFY_H
#define NETOBS_SERVICE_CONTROL_NOTIFY_H

#include <stdint.h>

/**
 * Send lines such as READY=1, for a second at most if systemd does not read; does nothing
 * without NOTIFY_SOCKET.
 */
void notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** Send a line as notify_send(), but drop it if it would have to wait. */
void notify_now(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** RELOADING=1, to be followed by READY=1. */
void notify_reloading(void);

/** @return how often to send WATCHDOG=1, in milliseconds; 0: not at all */
uint32_t notify_watchdog_ms(void);

#endif
