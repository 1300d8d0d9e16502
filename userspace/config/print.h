/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The parts of config_print(); strings as the language writes them. */
#ifndef HEADGATE_CONFIG_PRINT_H
#define HEADGATE_CONFIG_PRINT_H

#include "config.h"
#include "value.h"

/* As it is where the lexer allows that, else in quotes; always in quotes. */
void config_print_word(FILE *out, const char *text);
void config_print_string(FILE *out, const char *text);

/* print_limits.c */
void config_print_settings(const struct config *c, FILE *out);
void config_print_limits(const struct config *c, FILE *out);

#endif
