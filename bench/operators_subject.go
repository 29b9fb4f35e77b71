// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/setpoint-io/setpoint/internal/operators"
)

// subject is an operator whose cache is measured.
type subject struct {
	operator   string // its name in package internal/operators
	program    string // the package of its main function
	object     string // what it caches in numbers
	describe   func(size int) string
	edits      []operators.Line // of both sides
	flags      func(at addresses, certificates string) []string
	controller string             // the name of the controller whose reconciles are counted
	reconciles func(size int) int // how many of them
	populate   func(at *scene, module string) population
}

// population are the objects that an operator caches.
type population interface {
	// define defines their kinds.
	define(ctx context.Context) error
	// create creates them, or those for which the operator then makes them.
	create(ctx context.Context) error
	// bytes returns how many bytes of JSON one of them is.
	bytes(ctx context.Context) (int, error)
}

// addresses are where an operator serves, on the loopback interface.
type addresses struct{ metrics, profiles, webhook port }

// port is a port of the loopback interface.
type port string

func (p port) address() string { return "127.0.0.1:" + string(p) }

// operated is a subject in a cluster with its objects.
type operated struct {
	*scene
	*subject
	population
}

// subjects are all of them.
var subjects = []*subject{
	{
		operator: "cluster-api", program: "./core", object: "Machine",
		describe: func(size int) string {
			return fmt.Sprintf("its core manager, %d Machines in MachineSets of %d", size, machinesOfSet)
		},
		edits: []operators.Line{{ // the webhook server has no flag for it
			File: "core/main.go", Theirs: "webhook.Options{\n", Ours: "webhook.Options{\n\t\t\t\tHost: \"127.0.0.1\",\n",
		}},
		flags: func(at addresses, certificates string) []string {
			return []string{
				"--diagnostics-address", at.metrics.address(), "--insecure-diagnostics", "--profiler-address", at.profiles.address(),
				"--health-addr", "127.0.0.1:0", "--webhook-port", string(at.webhook), "--webhook-cert-dir", certificates,
				"--kube-api-qps", "1000", "--kube-api-burst", "1000", // what its client may send is not what is measured
			}
		},
		controller: "machine", reconciles: func(size int) int { return size },
		populate: func(at *scene, module string) population {
			return &fleet{scene: at, kinds: filepath.Join(module, "core", "config", "crd", "bases")}
		},
	},
	{
		operator: "trust-manager", program: "./cmd/trust-manager", object: "ConfigMap",
		describe: func(size int) string {
			return fmt.Sprintf("a Bundle with its ConfigMap in each of %d Namespaces", size)
		},
		edits: []operators.Line{
			// It has no profiles, and serves everything on all interfaces. Its client may send five requests a second.
			appLine(`HealthProbeBindAddress:        fmt.Sprintf("0.0.0.0:%d", opts.ReadyzPort),`, `PprofBindAddress: fmt.Sprintf("127.0.0.1:%d", opts.ReadyzPort),`),
			appLine(`BindAddress: fmt.Sprintf("0.0.0.0:%d", opts.MetricsPort),`, `BindAddress: fmt.Sprintf("127.0.0.1:%d", opts.MetricsPort),`),
			appLine("klog.SetLogger(log)\n", "klog.SetLogger(log)\n\t\t\topts.RestConfig.QPS = -1\n"),
		},
		flags: func(at addresses, certificates string) []string {
			return []string{
				"--leader-elect=false", "--metrics-port", string(at.metrics), "--readiness-probe-port", string(at.profiles),
				"--webhook-host", "127.0.0.1", "--webhook-port", string(at.webhook), "--webhook-certificate-dir", certificates,
			}
		},
		controller: "bundles", reconciles: func(int) int { return 1 }, // one looks at all Namespaces
		populate: func(at *scene, module string) population {
			return &bundle{scene: at, kinds: filepath.Join(module, "deploy", "crds")}
		},
	},
}

func appLine(theirs, ours string) operators.Line {
	return operators.Line{File: "cmd/trust-manager/app/app.go", Theirs: theirs, Ours: ours}
}

func subjectNamed(name string) (*subject, error) {
	var names []string
	for _, s := range subjects {
		if s.operator == name {
			return s, nil
		}
		names = append(names, s.operator)
	}
	return nil, fmt.Errorf("measuring operators: there is no %q; there are %s", name, strings.Join(names, " and "))
}
