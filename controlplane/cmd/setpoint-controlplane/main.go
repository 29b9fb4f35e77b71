// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	kubeversion "k8s.io/component-base/version"

	"github.com/setpoint-io/setpoint/controlplane"
)

// version is set by the linker.
var version = "unknown"

// Exit statuses, see doc.go.
const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	if run, ok := namesake(os.Args[0]); ok {
		os.Exit(run())
	}
	// Kubernetes' packages add flags of their own to the process-wide set, and
	// cobra would offer them all.
	pflag.CommandLine = pflag.NewFlagSet("", pflag.ContinueOnError)

	status := 0
	cmd := newCommand(&status)
	if err := cmd.Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "setpoint-controlplane: %v\nSee setpoint-controlplane --help.\n", err)
		status = exitUsage
	}
	os.Exit(status)
}

type flags struct {
	opts      controlplane.Options
	gates     map[string]string
	nodes     nodeFlags
	lifeline  bool
	verbosity int
	logFormat string
}

// nodeFlags are about the simulated nodes.
type nodeFlags struct {
	count      int
	noPodCIDRs bool
}

func newCommand(status *int) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "setpoint-controlplane",
		Short: "Run a real Kubernetes control plane on this machine",
		Long: `Run kube-apiserver, etcd and kube-scheduler in one process, until Ctrl-C.

Without --data-dir the cluster lives in a temporary directory and is gone after.
No controllers run: "setpoint up" adds a controller manager and simulated nodes.
Progress is reported on standard output, one JSON object a line.`,
		Example: `  # a cluster for now; the path of its kubeconfig is in the last line
  setpoint-controlplane

  # one that is kept, at a fixed port, with its kubeconfig beside you
  setpoint-controlplane --data-dir ~/.cache/my-cluster --port 6443 --kubeconfig ./my.kubeconfig

  # two API servers on one etcd, ten simulated nodes, a feature gate
  setpoint-controlplane --servers 2 --nodes 10 --feature-gates AllAlpha=false,MutableCSINodeAllocatableCount=true`,
		Args:              cobra.NoArgs,
		Version:           fmt.Sprintf("%s (Kubernetes %s, %s)", version, kubeversion.Get().GitVersion, kubeversion.Get().GoVersion),
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.complete(); err != nil {
				return err
			}
			if err := f.run(cmd); err != nil {
				fmt.Fprintf(os.Stderr, "setpoint-controlplane: %v\n", err)
				*status = exitFailed
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.opts.DataDir, "data-dir", "", "keep the cluster in this `directory`; created if missing (default: temporary)")
	fs.StringVar(&f.opts.BindAddress, "bind-address", controlplane.DefaultBindAddress, "`IP` address that the API servers listen on")
	fs.IntVar(&f.opts.Port, "port", 0, "port of the first API server; further ones take the ports after it (default: free ones)")
	fs.IntVar(&f.opts.APIServers, "servers", 1, "number of API servers on the one etcd")
	fs.IntVar(&f.nodes.count, "nodes", 0, "number of simulated nodes")
	fs.BoolVar(&f.nodes.noPodCIDRs, "no-pod-cidrs", false, "create simulated nodes without podCIDRs; a controller has to allocate them")
	fs.BoolVar(&f.opts.DisableScheduler, "no-scheduler", false, "leave out kube-scheduler")
	fs.BoolVar(&f.opts.DualStack, "dual-stack", false, "give Services IPv6 addresses too, if they request them")
	fs.StringToStringVar(&f.gates, "feature-gates", nil, "Kubernetes feature `gates`, such as A=true,B=false")
	fs.StringToStringVar(&f.opts.RuntimeConfig, "runtime-config", nil, "versions of `APIs` to serve that are off by default, such as api/alpha=true or resource.k8s.io/v1alpha3=true")
	fs.StringVar(&f.opts.KubeconfigFile, "kubeconfig", "", "write the administrator's kubeconfig to this `file` once all is ready (default: in the data directory)")
	fs.BoolVar(&f.lifeline, "lifeline", false, "stop when standard input ends, for use as a child process")
	fs.IntVarP(&f.verbosity, "verbosity", "v", 0, "log to standard error: 1 for information, up to 10 for everything (0: errors only, to controlplane.log in the data directory)")
	fs.StringVar(&f.logFormat, "log-format", "text", "text or json")
	return cmd
}

func (f *flags) complete() error {
	f.opts.FeatureGates = map[string]bool{}
	for name, value := range f.gates {
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("--feature-gates %s=%s: the value must be true or false", name, value)
		}
		f.opts.FeatureGates[name] = on
	}
	if f.nodes.count < 0 {
		return fmt.Errorf("--nodes %d: 0 or more", f.nodes.count)
	}
	if f.opts.APIServers < 1 {
		return fmt.Errorf("--servers %d: 1 or more", f.opts.APIServers)
	}
	var err error
	f.opts.Logger, err = newLogger(os.Stderr, f.verbosity, f.logFormat)
	return err
}

func (f *flags) run(cmd *cobra.Command) error {
	stdin := cmd.InOrStdin()
	if !f.lifeline {
		stdin = nil
	}
	ctx, cancel := onStopRequest(cmd.Context(), stdin)
	defer cancel()
	return run(ctx, f.opts, f.nodes, &reporter{out: os.Stdout, began: time.Now()})
}
