// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controlplane/metrics"
)

// Defaults of Options, and why.
const (
	// DefaultPods is the kubelet's own default of --max-pods.
	DefaultPods = 110

	// DefaultGrace keeps a deleted Pod long enough to be seen terminating, and
	// a test that deletes Pods short.
	DefaultGrace = time.Second

	// DefaultBackoff and DefaultMaxBackoff are a tenth of the kubelet's, so that a crash
	// loop shows within seconds.
	DefaultBackoff    = time.Second
	DefaultMaxBackoff = 30 * time.Second

	// DefaultWorkers is how many requests are under way at most. The API server
	// answers some 1,000 status updates a second; each takes it a few
	// milliseconds, so that more workers only queue up inside it.
	DefaultWorkers = 16
)

// NoLimit, as Options.Grace, lets Pods terminate for as long as their grace period.
const NoLimit time.Duration = -1

// Options configures the simulation. Config is needed, all else has a default.
type Options struct {
	// Config reaches the API server. Its user may do everything with Nodes, Pods,
	// Leases in kube-node-lease and Events, and read ResourceClaims, PersistentVolumeClaims,
	// PersistentVolumes and CSIDrivers. It is copied;
	// its limits on requests are not used, because Workers limits them.
	Config *rest.Config

	// Nodes is how many Nodes there are, named node-0, node-1, … Simulated Nodes
	// with higher numbers, of an earlier run, are removed. 0 is none.
	Nodes int

	// NoPodCIDRs has Nodes be created without spec.podCIDRs. A controller, such as
	// node-ipam-controller, has to allocate them. Pods wait until their Node has some.
	NoPodCIDRs bool

	// Pods is how many Pods a Node takes; 0 is DefaultPods.
	Pods int

	// Capacity is added to what each Node has, or replaces it: by default 32 CPUs,
	// 256 GiB of memory, 1 TiB of disk, and Pods.
	Capacity corev1.ResourceList

	// Grace is the longest grace period of a deleted Pod: a longer one is shortened to
	// it. 0 is DefaultGrace, NoLimit shortens none.
	Grace time.Duration

	// Backoff is the time before the second restart of a container (the first is
	// at once). It doubles with each restart up to MaxBackoff. 0 is DefaultBackoff
	// and DefaultMaxBackoff.
	Backoff    time.Duration
	MaxBackoff time.Duration

	// StageFiles are files with KWOK Stages, for Pods and Nodes, in YAML. A Pod or
	// Node that one of them selects is played by it, and by the simulation's own
	// rules only while none does.
	StageFiles []string

	// Serving has the Nodes answer kubectl logs, and refuse exec, attach and
	// port-forward, on a free port of 127.0.0.1. It is the TLS configuration of that
	// server and must verify client certificates: who may connect may read all logs.
	// ControlPlane.NodeServing returns one. Nil: nothing answers.
	Serving *tls.Config

	// Metrics has the simulation serve metrics.k8s.io, custom.metrics.k8s.io and
	// external.metrics.k8s.io, which kubectl top and autoscalers read, on a free port
	// of 127.0.0.1. The user of Config must then be allowed what package metrics
	// names. ControlPlane.MetricsServing returns it. Nil: these APIs do not exist.
	Metrics *metrics.Serving

	// Workers is how many requests may be under way; 0 is DefaultWorkers.
	Workers int

	// OnReady is called once, from another goroutine, when all Nodes are Ready and
	// have a Lease, and with Metrics when these are served. It may be nil.
	OnReady func()

	// Logger logs what happens, and what is wrong; nil is slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.Pods == 0 {
		o.Pods = DefaultPods
	}
	if o.Grace == 0 {
		o.Grace = DefaultGrace
	}
	if o.Backoff == 0 {
		o.Backoff = DefaultBackoff
	}
	if o.MaxBackoff == 0 {
		o.MaxBackoff = max(DefaultMaxBackoff, o.Backoff)
	}
	if o.Workers == 0 {
		o.Workers = DefaultWorkers
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.OnReady == nil {
		o.OnReady = func() {}
	}

	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	check(o.Config != nil, "no Config: say how the API server is reached")
	check(o.Nodes >= 0 && o.Nodes <= MaxNodes, "%d Nodes: 0 to %d can be simulated", o.Nodes, MaxNodes)
	check(o.Pods > 0 && o.Pods <= 1<<15, "%d Pods a Node: 1 to %d can be simulated", o.Pods, 1<<15)
	check(o.Backoff > 0 && o.MaxBackoff >= o.Backoff, "Backoff %s and MaxBackoff %s: 0 < Backoff <= MaxBackoff is needed", o.Backoff, o.MaxBackoff)
	check(o.Serving == nil || o.Serving.ClientAuth == tls.RequireAndVerifyClientCert,
		"Serving lets every client connect: its ClientAuth has to be RequireAndVerifyClientCert")
	check(o.Workers > 0, "%d Workers: at least one is needed", o.Workers)
	if len(problems) == 0 && o.Nodes > 0 {
		// The last Node is the one that there may be no addresses for.
		if _, err := newNode(o.Nodes-1, o); err != nil {
			problems = append(problems, err)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return Options{}, fmt.Errorf("options of the simulated nodes: %w", err)
	}
	return o, nil
}

// capacity returns what a Node has; it belongs to the caller.
func (o Options) capacity() corev1.ResourceList {
	out := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("32"),
		corev1.ResourceMemory:           resource.MustParse("256Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		corev1.ResourcePods:             *resource.NewQuantity(int64(o.Pods), resource.DecimalSI),
	}
	for name, quantity := range o.Capacity {
		out[name] = quantity.DeepCopy()
	}
	return out
}
