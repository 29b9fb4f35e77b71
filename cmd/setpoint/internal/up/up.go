// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/cmd/setpoint/internal/manage"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/child"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/published"
)

// stopTime is how long a part may take to stop before it is ended.
const stopTime = 20 * time.Second

// up is the command line of "setpoint up".
type up struct {
	w           *cli.World
	log         cli.Logging
	nodes       int
	dataDir     string
	port        int
	gates       manage.FeatureGates
	apis        cli.APIVersions
	allocate    bool
	kubeconfig  string
	controllers []string
	binary      string
}

// Command returns "setpoint up".
func Command(w *cli.World) *cobra.Command {
	u := &up{w: w, log: cli.Logging{ForPeople: true}}
	c := &cobra.Command{
		Use:   "up [flags] [-- COMMAND ARG...]",
		Short: "Run a cluster on this machine",
		Long: `Run a cluster on this machine: etcd, kube-apiserver and kube-scheduler, the real
ones, simulated nodes that run Pods in name only, and Setpoint's controllers.

Without COMMAND it stays until Ctrl-C. With COMMAND it runs that when all is
ready, with KUBECONFIG set, stops everything after it, and exits with its status.
While COMMAND runs, Ctrl-C is for COMMAND.

The cluster is gone afterwards, unless --data-dir keeps it. A second Ctrl-C ends
everything at once.

` + manage.ControllerHelp(),
		Example: `  # stays until Ctrl-C, and says where the kubeconfig is
  setpoint up

  # for a script: a cluster for one command
  setpoint up -- kubectl get nodes

  # tests that use package setpointtest, in a cluster without nodes
  setpoint up --nodes 0 -- go test ./...

  # for a test that waits for the file
  setpoint up --nodes 10 --kubeconfig ./test.kubeconfig`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 && c.ArgsLenAtDash() != 0 {
				return fmt.Errorf("%q: a command to run in the cluster comes after --, as in: setpoint up -- kubectl get nodes", args[0])
			}
			return u.run(c.Context(), args)
		},
	}
	f := c.Flags()
	f.IntVar(&u.nodes, "nodes", 3, "number of simulated nodes")
	f.StringVar(&u.dataDir, "data-dir", "", "keep the cluster in this `directory` (default: temporary)")
	f.IntVar(&u.port, "port", 0, "port of the API server (default: a free one)")
	f.Var(&u.gates, "feature-gates", "Kubernetes feature `gates`, such as A=true,B=false")
	f.Var(&u.apis, "runtime-config", "versions of `APIs` to serve that are off by default, as for kube-apiserver: api/alpha, or resource.k8s.io/v1alpha3=true")
	f.BoolVar(&u.allocate, "allocate-node-cidrs", false, "have node-ipam-controller give the nodes the addresses of their Pods; without it the nodes have some of their own")
	f.StringVar(&u.kubeconfig, "kubeconfig", "", "write the kubeconfig to this `file` once all is ready; it is removed at the end. One with other clusters is refused")
	cli.ControlPlaneFlag(f, &u.binary)
	manage.ControllersFlag(c, &u.controllers)
	u.log.Flags(f, c)
	cli.ExplainFlagErrors(c, nil)
	return c
}

func (u *up) run(ctx context.Context, command []string) error {
	entries, err := registry.Select(registry.Known(), u.controllers)
	if err != nil {
		return err
	}
	if err := u.gates.Obey(entries); err != nil {
		return err
	}
	if u.allocate {
		if err := allocateNodeCIDRs(entries); err != nil {
			return err
		}
	}
	if u.nodes < 0 {
		return fmt.Errorf("--nodes=%d: want 0 or more", u.nodes)
	}
	log, err := u.log.Logger(u.w, slog.LevelWarn)
	if err != nil {
		return err
	}
	binary, err := u.w.FindControlPlane(u.binary)
	if err != nil {
		return err
	}
	if len(command) > 0 {
		// Said before a cluster is started for it.
		if _, err := exec.LookPath(command[0]); err != nil {
			return fmt.Errorf("running %s: %w", command[0], err)
		}
	}
	if u.kubeconfig != "" {
		if err := published.Claim(u.kubeconfig); err != nil {
			return fmt.Errorf("--kubeconfig %s: %w", u.kubeconfig, err)
		}
	}

	s := &session{
		w: u.w, managed: make(chan error, 1),
		progress: &progress{out: u.w.Stderr, live: u.w.Terminal},
	}
	if len(command) > 0 {
		s.command = newCommand(u.w, command)
	}
	ctx, done := u.w.UntilSignal(ctx, cli.Interruption{
		Pass: func(sig os.Signal) bool {
			return sig == os.Interrupt && u.w.Interactive && s.command != nil && s.command.running.Load()
		},
		First:  func() { fmt.Fprintln(u.w.Stderr, "Stopping. Ctrl-C again ends everything at once.") },
		Second: s.kill,
	})
	defer done()

	began := time.Now()
	err = s.start(ctx, u, binary, entries, log)
	s.progress.close()
	if err == nil {
		s.say(time.Since(began))
		err = s.serve(ctx)
	} else if sig, asked := cli.SignalOf(ctx); asked {
		err = cli.StatusError(cli.SignalStatus(sig)) // the command was not run to its end
	}
	if failure := s.stop(); failure != nil {
		// The command's status is its own; that the end was not clean is said.
		fmt.Fprintln(u.w.Stderr, "setpoint: stopping:", failure)
		if err == nil {
			err = cli.StatusError(1)
		}
	}
	return err
}

// childOptions are those of the control plane.
func (u *up) childOptions(binary string, progress func(child.Progress)) child.Options {
	o := child.Options{
		Path: binary, DataDir: u.dataDir, Port: u.port, Nodes: u.nodes, NoPodCIDRs: u.allocate,
		FeatureGates: u.gates, RuntimeConfig: u.apis, Progress: progress,
	}
	// Two steps of ours are one of the child's, whose components talk a lot.
	if u.log.Verbosity > 1 {
		o.Verbosity, o.Log = u.log.Verbosity-1, u.w.Stderr
	}
	return o
}

// describe is what a component is called in the progress.
func (u *up) describe(component string) string {
	if component == "nodes" {
		return plural(u.nodes, "simulated node")
	}
	return component
}

func loadConfig(s *session) error {
	config, err := clientcmd.BuildConfigFromFlags("", s.ready.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the control plane's kubeconfig: %w", err)
	}
	s.config = config
	return nil
}
