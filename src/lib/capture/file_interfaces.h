/* SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause */
/*
 * The interface of each packet in a pcapng file, and the direction it passed it in, which libpcap
 * does not tell: the bytes of the file pass here on their way to libpcap.
 */
#ifndef NETOBS_CAPTURE_FILE_INTERFACES_H
#define NETOBS_CAPTURE_FILE_INTERFACES_H

#include <stdio.h>

struct file_interfaces;

/* As epb_flags has it: draft-ietf-opsawg-pcapng, 4.3.1. */
enum passed { PASSED_EITHER, PASSED_IN, PASSED_OUT };

/*
 * @param inner  closed with *@ret_outer, unless it is stdin, or by the caller on failure
 * @param ret_interfaces  closed with file_interfaces_free(), after *@ret_outer
 * @return 0 or -ENOMEM
 */
int file_interfaces_open(FILE *inner, struct file_interfaces **ret_interfaces,
			 FILE **ret_outer);
void file_interfaces_free(struct file_interfaces *interfaces);

/*
 * Of the next packet of the file, for each that libpcap returns.
 * @return its name, valid until file_interfaces_free(); NULL: the file does not say
 */
const char *file_interfaces_next(struct file_interfaces *interfaces,
				 enum passed *ret_passed);

#endif
