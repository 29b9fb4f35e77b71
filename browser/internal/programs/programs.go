// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package programs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/terminal"
)

// startWithin is how long a program may take to start, on a machine that is busy with other tests.
const startWithin = 2 * time.Minute

// columns is the width of the terminals: no address is cut.
const columns = 200

// Program is a program that serves the page.
type Program struct {
	*terminal.Program
	// Login is the address that gives one browser its cookie, once; empty if the pages need none.
	Login string
	// Root is the address of the pages, without a slash at the end.
	Root string
}

// start starts a program of setpoint with variables of the environment, and waits until it has shown a text.
func start(ctx context.Context, setpoint string, env []string, text string, args ...string) (*Program, error) {
	p, err := terminal.New(ctx, columns, setpoint, args...)
	if err != nil {
		return nil, err
	}
	p.Cmd.Env = append(p.Cmd.Env, env...)
	if err := p.Start(); err != nil {
		return nil, err
	}
	if err := p.Until(ctx, startWithin, func(shown string) bool { return strings.Contains(shown, text) }); err != nil {
		return nil, errors.Join(err, p.End())
	}
	return &Program{Program: p}, nil
}

// loginAddress is an address for one browser, as "setpoint up" and "setpoint ui" print it.
var loginAddress = regexp.MustCompile(`http://\S+/login/\S+`)

// readLogin reads the address for the browser from what the program has shown.
func (p *Program) readLogin() error {
	p.Login = loginAddress.FindString(p.Shown())
	address, err := url.Parse(p.Login)
	if err != nil || p.Login == "" {
		return errors.Join(fmt.Errorf("%s shows no address of its page: %w; it showed\n%s", p.Cmd, err, p.Shown()), p.End())
	}
	p.Root = address.Scheme + "://" + address.Host
	return nil
}

// Up starts "setpoint up" with flags, and waits until its cluster is ready.
func Up(ctx context.Context, setpoint string, flags ...string) (*Program, error) {
	p, err := start(ctx, setpoint, nil, "Ctrl-C stops everything.", append([]string{"up"}, flags...)...)
	if err != nil {
		return nil, err
	}
	return p, p.readLogin()
}

// Kubeconfig returns the path of the kubeconfig that "setpoint up" shows.
func (p *Program) Kubeconfig() string {
	_, path, _ := strings.Cut(p.Shown(), "KUBECONFIG=")
	path, _, _ = strings.Cut(path, "\n")
	return strings.TrimSpace(path)
}

// UI starts "setpoint ui" for the cluster of a kubeconfig. Empty, it is the one of the environment.
func UI(ctx context.Context, setpoint, kubeconfig string) (*Program, error) {
	var env []string
	if kubeconfig != "" {
		env = append(env, "KUBECONFIG="+kubeconfig)
	}
	p, err := start(ctx, setpoint, env, "Ctrl-C ends this", "ui", "--no-open")
	if err != nil {
		return nil, err
	}
	return p, p.readLogin()
}

// Manager starts "setpoint manager" in the cluster of a kubeconfig, with more flags, and waits until it works. It announces
// its secure port, and serves the page without TLS on the other port. Both are on the loopback interface.
func Manager(ctx context.Context, setpoint, kubeconfig string, securePort, plainPort int, flags ...string) (*Program, error) {
	all := append([]string{"manager", "--kubeconfig", kubeconfig, "--authentication-kubeconfig", kubeconfig, "--authorization-kubeconfig", kubeconfig,
		"--bind-address", "127.0.0.1", "--secure-port", fmt.Sprint(securePort), "--plain-port", fmt.Sprint(plainPort)}, flags...)
	p, err := start(ctx, setpoint, nil, "managing", all...)
	if err != nil {
		return nil, err
	}
	p.Root = fmt.Sprintf("http://localhost:%d/page", plainPort)
	return p, nil
}
