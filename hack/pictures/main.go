// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// options are what the flags say.
type options struct {
	out, setpoint, kubectl string
	columns                int
	clock                  time.Time // of the first step
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := pictures(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to be stopped
	}
}

func pictures(ctx context.Context) error {
	var o options
	var at string
	flag.StringVar(&o.out, "out", "docs/pictures", "`folder` to write the pictures to")
	flag.StringVar(&o.setpoint, "setpoint", "bin/setpoint", "`path` of setpoint")
	flag.StringVar(&o.kubectl, "kubectl", "bin/kubectl", "`path` of kubectl")
	flag.IntVar(&o.columns, "columns", 120, "how wide the terminal is")
	flag.StringVar(&at, "clock", "10:24:00", "the `time` that is shown for the beginning")
	flag.Parse()
	var err error
	if o.clock, err = time.Parse(time.TimeOnly, at); err != nil {
		return fmt.Errorf("-clock=%s: want a time such as 10:24:00", at)
	}
	if os.Getenv("KUBECONFIG") == "" {
		return errors.New("KUBECONFIG is not set: the story is not for a cluster that somebody needs; run it by setpoint up -- COMMAND, as make pictures does")
	}
	shown, err := record(ctx, o)
	if err != nil {
		return err
	}
	for i, s := range scenes {
		prompt := "\x1b[2m$\x1b[0m \x1b[1m" + commandLine(s.args) + "\x1b[0m\n"
		lines, err := screen(prompt+shown[i], o.columns)
		if err != nil {
			return err
		}
		svg := draw(picture{title: s.title, about: s.about, columns: o.columns, lines: lines})
		file := filepath.Join(o.out, s.file)
		if err := os.WriteFile(file, []byte(svg), 0o644); err != nil { //nolint:gosec // a document, for everybody
			return fmt.Errorf("writing a picture: %w", err)
		}
		fmt.Printf("%s: %d lines, %d bytes\n", file, len(lines), len(svg))
	}
	return nil
}

// commandLine returns a command as somebody would type it.
func commandLine(args []string) string {
	words := []string{"setpoint", "watch"}
	for _, arg := range args {
		if strings.ContainsAny(arg, ` "()!&|*`) {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
