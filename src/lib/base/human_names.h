/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/* Names of protocols and endpoints in the form that people read. */
#ifndef NETOBS_BASE_HUMAN_NAMES_H
#define NETOBS_BASE_HUMAN_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* "TCP", "proto-123" */
void human_protocol(char *buf, size_t size, uint8_t proto);

/* @return "vxlan", of enum netobs_tunnel; NULL: no such number */
const char *tunnel_name(uint8_t type);

/* "vxlan", or "tunnel" */
const char *human_tunnel_name(uint8_t type);

/* "10.0.0.1:80", "[fe80::1]:53" */
void human_endpoint(char *buf, size_t size, const char *host, const char *port);

#endif
