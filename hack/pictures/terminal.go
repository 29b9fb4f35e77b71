// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/terminal"
)

const startWithin = 30 * time.Second

// seenAll is the log message of a watch that is ready: it publishes every change from now on.
const seenAll = "what was there has been seen"

// startWatch starts "setpoint watch" and waits until it publishes every change.
func startWatch(ctx context.Context, setpoint string, columns int, args []string) (*terminal.Program, error) {
	// The log is read here, and not shown: -v tells when the watch is ready.
	all := append(append([]string{"watch"}, args...), "-v", "--log-format", "text")
	t, err := terminal.New(ctx, columns, setpoint, all...)
	if err != nil {
		return nil, err
	}
	t.Cmd.Stderr = nil
	said, err := t.Cmd.StderrPipe()
	if err != nil {
		t.Discard()
		return nil, fmt.Errorf("starting setpoint watch: %w", err)
	}
	if err := t.Start(); err != nil {
		return nil, err
	}
	ready := make(chan error, 1)
	go listen(said, ready)
	select {
	case err = <-ready:
	case <-time.After(startWithin):
		err = fmt.Errorf("setpoint watch %s: it is not ready after %s", strings.Join(args, " "), startWithin)
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(err, t.End())
	}
	return t, nil
}

// listen reads the log of a watch to its end, and reports when the watch is ready.
func listen(said io.Reader, ready chan<- error) {
	var all []string
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		all = append(all, lines.Text())
		if strings.Contains(lines.Text(), seenAll) {
			ready <- nil
			break
		}
	}
	for lines.Scan() { // a full pipe would block the watch
		continue
	}
	select {
	case ready <- fmt.Errorf("setpoint watch ended before it was ready; its log is\n%s", strings.Join(all, "\n")):
	default:
	}
}

// ready is what "setpoint up" shows last when its cluster is ready.
const ready = "Ctrl-C stops everything."

// startUp starts "setpoint up" and waits until its cluster is ready. It returns the path of
// the kubeconfig that it shows.
func startUp(ctx context.Context, setpoint string, columns int) (t *terminal.Program, kubeconfig string, err error) {
	t, err = terminal.New(ctx, columns, setpoint, "up")
	if err != nil {
		return nil, "", err
	}
	if err := t.Start(); err != nil {
		return nil, "", err
	}
	if err := t.Until(ctx, 4*startWithin, func(shown string) bool { return strings.Contains(shown, ready) }); err != nil {
		return nil, "", errors.Join(err, t.End())
	}
	_, path, _ := strings.Cut(t.Shown(), "KUBECONFIG=")
	path, _, _ = strings.Cut(path, "\r")
	return t, path, nil
}
