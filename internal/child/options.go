// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package child

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Binary is the name of the program that is the child.
const Binary = "setpoint-controlplane"

// Options configure the control plane to start. Path is needed.
type Options struct {
	// Path is the setpoint-controlplane binary.
	Path string

	// DataDir keeps the cluster; empty is a temporary directory that the child
	// removes when it stops.
	DataDir string

	// Port is that of the first API server; 0 is a free one.
	Port int

	// Servers is how many API servers share the one etcd; 0 is one.
	Servers int

	// Nodes is how many nodes are simulated.
	Nodes int

	// NoPodCIDRs has the simulated nodes be created without podCIDRs.
	NoPodCIDRs bool

	// NoScheduler leaves kube-scheduler out: Pods are created, and no node runs them.
	NoScheduler bool

	// DualStack gives Services IPv6 addresses too, if they request them.
	DualStack bool

	// FeatureGates are passed on to Kubernetes.
	FeatureGates map[string]bool

	// RuntimeConfig is passed on to kube-apiserver.
	RuntimeConfig map[string]string

	// Verbosity is how much the components log, to Log: 0 nothing, up to 10
	// for everything.
	Verbosity int

	// JSON has them log JSON, not text.
	JSON bool

	// Log is what the child writes to its standard error. Nil: nothing of it
	// is shown, except the end of it in the error of a child that died.
	Log io.Writer

	// Progress, when not nil, is called by one goroutine as each component
	// starts and becomes ready.
	Progress func(Progress)
}

// Progress is a step of the child's start.
type Progress struct {
	Component string        // "etcd", "kube-apiserver", "kube-scheduler", "nodes"
	Ready     bool          // false: it is being started
	Elapsed   time.Duration // since the child started, to a tenth of a second
}

func (o Options) args() []string {
	args := []string{
		"--lifeline",
		"--nodes", strconv.Itoa(o.Nodes),
		"--servers", strconv.Itoa(max(o.Servers, 1)),
		"-v", strconv.Itoa(o.Verbosity),
	}
	if o.DataDir != "" {
		args = append(args, "--data-dir", o.DataDir)
	}
	if o.Port != 0 {
		args = append(args, "--port", strconv.Itoa(o.Port))
	}
	if o.JSON {
		args = append(args, "--log-format", "json")
	}
	if len(o.FeatureGates) > 0 {
		gates := make([]string, 0, len(o.FeatureGates))
		for _, name := range slices.Sorted(maps.Keys(o.FeatureGates)) {
			gates = append(gates, name+"="+strconv.FormatBool(o.FeatureGates[name]))
		}
		args = append(args, "--feature-gates", strings.Join(gates, ","))
	}
	if len(o.RuntimeConfig) > 0 {
		versions := make([]string, 0, len(o.RuntimeConfig))
		for _, name := range slices.Sorted(maps.Keys(o.RuntimeConfig)) {
			versions = append(versions, name+"="+o.RuntimeConfig[name])
		}
		args = append(args, "--runtime-config", strings.Join(versions, ","))
	}
	if o.NoPodCIDRs {
		args = append(args, "--no-pod-cidrs")
	}
	if o.DualStack {
		args = append(args, "--dual-stack")
	}
	if o.NoScheduler {
		args = append(args, "--no-scheduler")
	}
	return args
}
