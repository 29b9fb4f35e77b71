// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// Logging is how much is logged, and how.
type Logging struct {
	// Verbosity is the number of -v.
	Verbosity int
	// ForPeople says that the format "auto" is lines for people on a terminal, and not text.
	ForPeople bool
	format    string
}

// Flags adds its flags.
func (l *Logging) Flags(flags *pflag.FlagSet, c *cobra.Command) {
	flags.CountVarP(&l.Verbosity, "verbose", "v", "log more; -vv logs everything")
	auto := "text"
	if l.ForPeople {
		auto = "people"
	}
	flags.StringVar(&l.format, "log-format", "auto", "text, json, people: lines that are easy to read, with warnings of one reason together, or auto: "+auto+" on a terminal and json otherwise")
	_ = c.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions([]string{"auto", "people", "text", "json"}, cobra.ShellCompDirectiveNoFileComp))
}

// SetFormat sets people, text or json instead of the flag.
func (l *Logging) SetFormat(format string) { l.format = format }

// Logger returns the logger of the flags. quiet is the level without -v; each -v lowers
// it by one.
func (l *Logging) Logger(w *World, quiet slog.Level) (*slog.Logger, error) {
	format := l.format
	if format == "auto" {
		format = "json"
		switch {
		case w.Terminal && l.ForPeople:
			format = "people"
		case w.Terminal:
			format = "text"
		}
	}
	// slog's levels are four apart.
	options := &slog.HandlerOptions{Level: quiet - slog.Level(4*l.Verbosity)}
	var log *slog.Logger
	switch format {
	case "people":
		handler := newPeople(w.Stderr, options.Level.Level(), time.Local, w.Terminal)
		w.atEnd = append(w.atEnd, handler.flush)
		log = slog.New(handler)
	case "text":
		log = slog.New(slog.NewTextHandler(w.Stderr, options))
	case "json":
		log = slog.New(slog.NewJSONHandler(w.Stderr, options))
	default:
		return nil, fmt.Errorf("--log-format=%s: want auto, people, text or json", l.format)
	}
	// What client-go's transport has to say goes the same way as the rest.
	klog.SetSlogLogger(log.With("from", "client-go"))
	return log, nil
}
