// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/explain"
	"github.com/setpoint-io/setpoint/explain/gather"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/printable"
	"github.com/setpoint-io/setpoint/internal/records"
)

// command is one run of the command.
type command struct {
	w         *cli.World
	target    cli.Target
	namespace string
	manager   string
	form      string
	watch     bool
}

// watchEvery is how often --watch looks whether the answer has changed.
const watchEvery = time.Second

// Command returns "setpoint explain".
func Command(w *cli.World) *cobra.Command {
	x := &command{w: w}
	c := &cobra.Command{
		Use:   "explain KIND/NAME | KIND NAME",
		Short: "Say why an object is as it is: what it waits for, on whom, since when",
		Long: `Say why an object is as it is. The first sentence says what the object waits for,
or that all is as it should be. After it come the chain of causes, what controllers
did not do and why, what is in trouble below the object, and who owns which fields.

What controllers did and why is in the record of the cluster's manager ("setpoint up"
or "setpoint manager"). The Lease kube-system/setpoint-manager has its address, and
the command sends it the client certificate of the kubeconfig. Without a manager the
answer comes from the cluster alone, and says what is not known.`,
		Example: `  setpoint explain deploy/web
  setpoint explain pod web-6f7c-x2x -n shop
  setpoint explain ns/old -o json

  # until it changes
  setpoint explain deploy/web --watch`,
		Args: func(_ *cobra.Command, args []string) error { _, _, err := named(args); return err },
		RunE: func(c *cobra.Command, args []string) error { return x.run(c.Context(), args) },
	}
	flags := c.Flags()
	x.target.Flags(flags)
	flags.StringVarP(&x.namespace, "namespace", "n", "", "`namespace` of the object (default: that of the kubeconfig's context)")
	flags.StringVar(&x.manager, "manager", "", "`URL` of the manager's pages, such as http://localhost:8080 for --plain-port 8080 (default: what the Lease says)")
	flags.StringVarP(&x.form, "output", "o", "text", "`form` of the answer: text or json")
	flags.BoolVarP(&x.watch, "watch", "w", false, "wait until the answer changes, and print it again, until Ctrl-C")
	x.complete(c)
	cli.ExplainFlagErrors(c, nil)
	return c
}

func (x *command) run(ctx context.Context, args []string) error {
	if x.form != "text" && x.form != "json" {
		return fmt.Errorf("--output=%q: want text or json", x.form)
	}
	kind, name, err := named(args)
	if err != nil {
		return err
	}
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
	managers := make(chan gather.Record, 1)
	go func() { managers <- records.Of(ctx, c, config, x.manager) }() // while the server says which kinds it has
	found, err := x.find(ctx, c, kind, name)
	if err != nil {
		return err
	}
	g := gather.Gatherer{Client: c, Record: <-managers}
	var before *explain.Answer
	for {
		facts, err := g.Facts(ctx, found.resource, found.key)
		if err != nil {
			return err
		}
		answer := explain.Tell(facts)
		if answer.Code == explain.CodeGone && len(answer.Chain) == 0 && before == nil {
			return found.missing(ctx, g, answer.Unknown)
		}
		if before == nil || !answer.Agrees(before) {
			if err := x.print(&answer); err != nil {
				return err
			}
		}
		before = &answer
		if !x.watch {
			return nil
		}
		select {
		case <-time.After(watchEvery):
		case <-ctx.Done():
			return nil
		}
	}
}

// print writes the answer in its form.
func (x *command) print(answer *explain.Answer) error {
	if x.form == "json" {
		return writeJSON(x.w.Stdout, answer)
	}
	return answer.Write(x.w.Stdout)
}

// writeJSON writes the answer as JSON, in which characters that steer terminals are escaped.
func writeJSON(to io.Writer, answer *explain.Answer) error {
	encoded, err := json.MarshalIndent(answer, "", "  ")
	if err != nil {
		return err
	}
	_, err = to.Write(append(printable.JSON(encoded), '\n'))
	return err
}
