// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// pace is the time between two commands. The server stores times in whole seconds: changes of one second could not be told
// apart.
const pace = 2 * time.Second

// The namespaces of the story: of the rollout, and of the quota.
const (
	namespace = "shop"
	crowded   = "outlet"
)

// story are the commands of kubectl, one after the other.
var story = [][]string{
	{"create", "namespace", namespace},
	{"--namespace", namespace, "create", "deployment", "web", "--image=nginx:1.28", "--replicas=6"},
	{"--namespace", namespace, "create", "configmap", "settings", "--from-literal=currency=EUR"},
	{"--namespace", namespace, "rollout", "status", "deployment/web", "--timeout=60s"},
	{"--namespace", namespace, "expose", "deployment", "web", "--port=80"},
	{"--namespace", namespace, "set", "image", "deployment/web", "nginx=registry.invalid/shop/web:1.29"},
	{"create", "namespace", crowded},
	{"--namespace", crowded, "create", "quota", "few", "--hard=pods=2"},
	{"--namespace", crowded, "wait", "--for=jsonpath={.status.hard.pods}=2", "resourcequota/few", "--timeout=60s"},
	{"--namespace", crowded, "create", "deployment", "cart", "--image=nginx:1.28", "--replicas=4"},
	{"--namespace", crowded, "wait", "--for=condition=ReplicaFailure", "deployment/cart", "--timeout=60s"},
}

// play plays the story.
func play(ctx context.Context, kubectl string) error {
	next := time.NewTicker(pace)
	defer next.Stop()
	for _, args := range story {
		if out, err := exec.CommandContext(ctx, kubectl, args...).CombinedOutput(); err != nil {
			return fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
		}
	}
	return nil
}

// pages is a "setpoint ui" that runs.
type pages struct {
	cmd   *exec.Cmd
	wait  func() error // for its end
	login string       // the address that gives a browser its cookie
	root  string       // the address of the pages, without a slash at the end
}

// loginAddress is the address that "setpoint ui" prints.
var loginAddress = regexp.MustCompile(`http://\S+/login/\S+`)

// startPages starts "setpoint ui" and waits for its address.
func startPages(ctx context.Context, setpoint string) (*pages, error) {
	p := &pages{cmd: exec.CommandContext(ctx, setpoint, "ui", "--no-open")}
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(os.Interrupt) }
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting setpoint ui: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- p.cmd.Wait()
		_ = in.Close() // a writer of a pipe has no error
	}()
	p.wait = func() error { return <-ended }
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if p.login = loginAddress.FindString(lines.Text()); p.login != "" {
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // until the program ends
	if p.login == "" {
		return nil, errors.Join(errors.New("setpoint ui ended without printing its address"), p.wait())
	}
	address, err := url.Parse(p.login)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the address of setpoint ui: %w", err), p.stop())
	}
	p.root = address.Scheme + "://" + address.Host
	return p, nil
}

// stop ends the program and waits for its end.
func (p *pages) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	return p.wait()
}
