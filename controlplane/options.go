// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// DefaultBindAddress keeps the API servers reachable from this machine only.
const DefaultBindAddress = "127.0.0.1"

// Options configure what Start starts. The zero value is useful: one API server on a free
// loopback port, etcd in a temporary directory, and the scheduler.
type Options struct {
	// DataDir keeps the cluster: etcd's files (written with fsync), the
	// certificate authorities, the service-account key. It is created with
	// mode 0700 when it does not exist. A later Start with the same directory
	// finds every object, and earlier client certificates stay valid.
	//
	// Empty: a temporary directory, without fsync, removed by Stop.
	DataDir string

	// BindAddress is the IP address the API servers listen on. Empty means
	// DefaultBindAddress. etcd never listens on the network.
	BindAddress string

	// Port is the first API server's port; further servers take the ports
	// that follow it. 0: each takes a free port from the kernel.
	Port int

	// APIServers is how many API servers share the etcd; 0 means 1.
	APIServers int

	// DualStack gives Services that request it IPv6 addresses beside those of IPv4. It is
	// for Services alone: API servers and simulated Pods keep the addresses that they
	// have.
	DualStack bool

	// FeatureGates are passed to the API servers and the scheduler. Kubernetes keeps
	// gates in process-wide variables: the first Start of a process fixes them, and a
	// later one with other gates is refused with ErrFeatureGates.
	FeatureGates map[string]bool

	// RuntimeConfig is --runtime-config of kube-apiserver: which versions of APIs the servers
	// serve that are off by default, such as {"api/alpha": "true"} or
	// {"resource.k8s.io/v1alpha3": "true"}. A kind behind a gate needs its gate as well.
	RuntimeConfig map[string]string

	// KubeconfigFile is where the administrator's kubeconfig is written, once
	// everything is ready; Stop removes it. A file that is there already is
	// replaced if it is of an earlier control plane, and else refused with
	// ErrForeignKubeconfig. That of a control plane that still runs is refused
	// too, and the error names its process. Empty: "kubeconfig" in the data directory.
	KubeconfigFile string

	// DisableScheduler leaves the scheduler out; Pods then stay Pending unless
	// something else binds them.
	DisableScheduler bool

	// Logger receives what the components log, etcd's lines with
	// component=etcd, the others with component=kubernetes. Its level decides
	// how much they say: slog.LevelDebug is Kubernetes' -v=4. Kubernetes' own
	// logger is process-wide, so with several control planes in one process
	// the Logger of the latest Start receives the lines of all. Nil: errors
	// are written to controlplane.log in the data directory.
	Logger *slog.Logger

	// Progress, when not nil, is called as each component starts and becomes
	// ready. Calls do not overlap; the function must not block and must not
	// call back into this package.
	Progress func(Event)
}

// An Event reports that a component changed state while Start ran.
type Event struct {
	// Component is "etcd", "kube-apiserver" or "kube-scheduler"; the second
	// and further API servers are "kube-apiserver-1", ….
	Component string
	State     State
	// Elapsed is the time since Start was called.
	Elapsed time.Duration
}

// State of a component in an Event.
type State string

// The states a component passes through, in this order.
const (
	Starting State = "starting"
	Ready    State = "ready"
)

func (o Options) withDefaults() (Options, error) {
	if o.BindAddress == "" {
		o.BindAddress = DefaultBindAddress
	}
	if o.APIServers == 0 {
		o.APIServers = 1
	}
	var errs []error
	if net.ParseIP(o.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("bind address %q is not an IP address", o.BindAddress))
	}
	if o.APIServers < 0 {
		errs = append(errs, fmt.Errorf("%d API servers: at least 1 is needed", o.APIServers))
	}
	if o.Port < 0 || o.Port+max(o.APIServers-1, 0) > 65535 {
		errs = append(errs, fmt.Errorf("port %d for %d API servers: ports lie between 1 and 65535, or 0 for free ones", o.Port, o.APIServers))
	}
	return o, errors.Join(errs...)
}
