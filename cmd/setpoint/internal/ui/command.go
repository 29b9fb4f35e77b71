// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/completion"
	"github.com/setpoint-io/setpoint/internal/managers"
	"github.com/setpoint-io/setpoint/page"
)

// command is one run of the command.
type command struct {
	w         *cli.World
	target    cli.Target
	namespace string
	manager   string
	closed    bool // no browser is opened
}

// Command returns "setpoint ui".
func Command(w *cli.World) *cobra.Command {
	x := &command{w: w}
	c := &cobra.Command{
		Use:   "ui",
		Short: "Show in a browser what the loops do, and why objects are as they are",
		Long: `Show in a browser what the loops of the cluster's managers do, why objects are as
they are, and what happened in a namespace. The pages are served on this machine
alone, until Ctrl-C, for the browser that opens the printed address.

The cluster is read with the rights of the kubeconfig. What controllers did and why
is in the records of the managers: that of the cluster ("setpoint up" or "setpoint
manager"), whose address is in the Lease kube-system/setpoint-manager, and those that
have announced themselves on other Leases. The command sends them the client
certificate of the kubeconfig. Without a manager the pages show what the cluster
alone knows, and the command goes on looking for one.`,
		Example: `  setpoint ui

  # what happens in a namespace
  setpoint ui -n shop

  # the address alone, for a browser of your choice
  setpoint ui --no-open`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return x.run(c.Context()) },
	}
	flags := c.Flags()
	x.target.Flags(flags)
	flags.StringVarP(&x.namespace, "namespace", "n", "", "`namespace` whose changes the browser shows first (default: the loops)")
	flags.StringVar(&x.manager, "manager", "", "`URL` of the manager's pages, such as http://localhost:8080 for --plain-port 8080 (default: what the Lease says)")
	flags.BoolVar(&x.closed, "no-open", false, "do not open a browser")
	x.complete(c)
	cli.ExplainFlagErrors(c, nil)
	return c
}

// complete says how flags can go on.
func (x *command) complete(c *cobra.Command) {
	cluster := completion.Cluster{Target: &x.target}
	for flag, complete := range map[string]cobra.CompletionFunc{
		"namespace": completion.Listed(cluster.Namespaces),
		"manager":   cobra.NoFileCompletions,
		"context": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return x.target.Contexts(), cobra.ShellCompDirectiveNoFileComp
		},
	} {
		_ = c.RegisterFlagCompletionFunc(flag, complete) // an error is a flag that there is not, or a second completion
	}
}

func (x *command) run(ctx context.Context) error {
	config, err := x.target.Config()
	if err != nil {
		return err
	}
	c, err := client.New(config)
	if err != nil {
		return err
	}
	ctx, stop := x.w.UntilSignal(ctx, cli.Interruption{First: func() {}, Second: func() {}})
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("serving the pages: %w", err)
	}
	s := managers.New(managers.Options{Client: c, Config: config, Named: x.manager, Say: func(text string) { fmt.Fprintln(x.w.Stderr, text) }})
	s.Look(ctx) // says what it waits for; the pages look again
	p := page.New(s, page.Options{Log: slog.New(slog.NewTextHandler(x.w.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	private, err := page.NewPrivate(listener, x.startingAt(p))
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	x.announce(private.Address())
	sampled := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	go func() { sampled <- p.Run(ctx) }()
	err = private.Run(ctx)
	cancel()
	return errors.Join(err, <-sampled)
}

// startingAt returns a handler that leads the first look at the loops to the namespace of the flag.
func (x *command) startingAt(h http.Handler) http.Handler {
	if x.namespace == "" {
		return h
	}
	var looked atomic.Bool
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" && !looked.Swap(true) {
			http.Redirect(w, r, "/changes?"+url.Values{"namespace": {x.namespace}}.Encode(), http.StatusSeeOther)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// announce prints the address, and opens a browser.
func (x *command) announce(address string) {
	fmt.Fprintf(x.w.Stdout, "the pages are at %s (the address works once)\nCtrl-C ends this\n", address)
	if x.closed {
		return
	}
	if err := openBrowser(x.w.Getenv, address); err != nil {
		fmt.Fprintf(x.w.Stderr, "no browser is opened: %v\n", err)
	}
}
