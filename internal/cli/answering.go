// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
)

// Answering is where a process answers questions about itself. The flags have the names
// of kube-controller-manager's, except the plain port.
type Answering struct {
	flagSet   *pflag.FlagSet
	bind      net.IP
	host      string // instead of bind
	asked     bool   // for the port, by a file
	port      int
	plainPort int
	serving   serving.Options
	sharing   Sharing
	served    net.Addr // set by Options
}

// Flags adds its flags. The port is the default one; 0 is none.
func (a *Answering) Flags(flags *pflag.FlagSet, port int) {
	a.flagSet = flags
	flags.IPVar(&a.bind, "bind-address", net.IPv4zero, "`address` to serve health, metrics and debug pages on, with TLS")
	flags.IntVar(&a.port, "secure-port", port, "port for that; 0 is none. If the default port is taken, the process runs without it")
	flags.IntVar(&a.plainPort, "plain-port", 0, "port on 127.0.0.1 for the same without TLS, for every user of this machine; 0 is none")
	flags.StringVar(&a.serving.CertFile, "tls-cert-file", "", "`file` with the certificate to serve with, and those that it was signed with; read again when it changes (default: one that is made at the start)")
	flags.StringVar(&a.serving.KeyFile, "tls-private-key-file", "", "`file` with its key")
	flags.BoolVar(&a.serving.Profiling, "profiling", true, "serve profiles at /debug/pprof/ as well")
}

// At sets the address instead of the flags: host:port, where no host is all addresses.
func (a *Answering) At(address string) error {
	host, text, err := net.SplitHostPort(address)
	port, bad := strconv.Atoi(text)
	if err != nil || bad != nil || port < 1 || port > 65535 {
		return fmt.Errorf("%q: want an address and a port, such as :8080 or 127.0.0.1:8080", address)
	}
	a.host, a.port, a.asked = host, port, true
	return nil
}

// Known has the means of authentication beside bearer tokens.
func (a *Answering) Known(by serving.Authentication) { a.serving.Authentication = by }

// Encrypt says how connections are encrypted, and where the certificate is kept that is made.
func (a *Answering) Encrypt(how serving.TLS, certDir string) {
	a.serving.TLS, a.serving.CertDir = how, certDir
}

// Share has the options of sharing the port with other processes.
func (a *Answering) Share(with Sharing) { a.sharing = with }

// Open has the paths that need no rights, see [serving.Options].
func (a *Answering) Open(paths []string) { a.serving.OpenPaths = paths }

// Serves reports whether there is a port with TLS.
func (a *Answering) Serves() bool { return a.port != 0 }

// Served returns the address of the port with TLS, after Options; nil if there is none.
func (a *Answering) Served() net.Addr { return a.served }

// Profiles reports whether profiles are served.
func (a *Answering) Profiles() bool { return a.serving.Profiling }

// Options listens, and returns the options of the manager for that.
func (a *Answering) Options(ctx context.Context, log *slog.Logger) ([]manager.Option, error) {
	for flag, port := range map[string]int{"secure-port": a.port, "plain-port": a.plainPort} {
		if port < 0 || port > 65535 {
			return nil, fmt.Errorf("--%s=%d: want 1 to 65535, or 0 for none", flag, port)
		}
	}
	if a.Serves() && (a.serving.CertFile == "") != (a.serving.KeyFile == "") {
		return nil, errors.New("--tls-cert-file and --tls-private-key-file: want both or none")
	}
	var options []manager.Option
	if a.port != 0 {
		l, err := listen(ctx, cmp.Or(a.host, a.address()), a.port, a.sharing)
		switch {
		case err == nil:
			a.served = l.Addr()
			options = append(options, manager.Serve(l, a.serving))
		case errors.Is(err, syscall.EADDRINUSE) && !a.asked && !a.flagSet.Changed("secure-port"):
			log.Warn("not serving health and metrics: the port is taken; choose another port with --secure-port", "port", a.port)
		default:
			return nil, fmt.Errorf("--secure-port: %w", err)
		}
	}
	if a.plainPort != 0 {
		l, err := listen(ctx, "127.0.0.1", a.plainPort, Sharing{})
		if err != nil {
			return nil, fmt.Errorf("--plain-port: %w", err)
		}
		options = append(options, manager.Serve(l, serving.Options{Plain: true, Profiling: a.serving.Profiling}))
	}
	return options, nil
}

// address is that of the flag. None is all addresses.
func (a *Answering) address() string {
	if len(a.bind) == 0 {
		return ""
	}
	return a.bind.String()
}

func listen(ctx context.Context, host string, port int, with Sharing) (net.Listener, error) {
	var config net.ListenConfig
	if with != (Sharing{}) {
		config.Control = with.control
	}
	return config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}
