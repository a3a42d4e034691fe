/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Accesses that the compiler neither repeats nor leaves out, as the kernel names them. */
#ifndef NETOBS_BPF_ONCE_H
#define NETOBS_BPF_ONCE_H

#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile typeof(x) *)&(x) = (v))

#endif
