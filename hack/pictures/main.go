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

	"github.com/setpoint-io/setpoint/internal/terminal"
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
	if err := putInPath(o.kubectl); err != nil {
		return err
	}
	up, kubeconfig, err := startUp(ctx, o.setpoint, upColumns)
	if err != nil {
		return err
	}
	if err := os.Setenv("KUBECONFIG", kubeconfig); err != nil {
		return errors.Join(err, up.End())
	}
	return errors.Join(drawAll(ctx, o, up), up.End())
}

// drawAll draws each picture in the cluster of a "setpoint up" that runs.
func drawAll(ctx context.Context, o options, up *terminal.Program) error {
	first, err := minute(ctx, o, up)
	if err != nil {
		return err
	}
	if err := write(o, minuteFile, first); err != nil {
		return err
	}
	shown, err := record(ctx, o)
	if err != nil {
		return err
	}
	for i, s := range scenes {
		command := commandLine("setpoint", append([]string{"watch"}, s.args...)...)
		lines, err := screen(prompt(command)+shown[i], o.columns)
		if err != nil {
			return err
		}
		all := pane{columns: o.columns, rows: len(lines), lines: still(lines)}
		if err := write(o, s.file, picture{title: s.title, about: s.about, panes: []pane{all}}); err != nil {
			return err
		}
	}
	return nil
}

// write writes a picture as a file.
func write(o options, name string, p picture) error {
	svg := draw(p)
	file := filepath.Join(o.out, name)
	if err := os.WriteFile(file, []byte(svg), 0o644); err != nil { //nolint:gosec // a document, which every user may read
		return fmt.Errorf("writing a picture: %w", err)
	}
	fmt.Printf("%s: %d bytes\n", file, len(svg))
	return nil
}

// prompt is a line of a terminal with a typed command.
func prompt(command string) string { return "\x1b[2m$\x1b[0m \x1b[1m" + command + "\x1b[0m\n" }

// commandLine returns a command as a user types it.
func commandLine(program string, args ...string) string {
	words := []string{program}
	for _, arg := range args {
		if strings.ContainsAny(arg, ` "()!&|*`) {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}
