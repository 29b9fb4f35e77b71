// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"crypto/tls"
	"errors"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// ServerName is the name by which the API server calls a Server: that of its Service. The
// certificate of Serving must be for it.
const ServerName = serviceName + "." + serviceNamespace + ".svc"

// Serving is how a Server and the API server recognize each other.
// ControlPlane.MetricsServing returns one.
type Serving struct {
	// TLS is the configuration of the Server. It must verify client certificates,
	// and accept the API server alone.
	TLS *tls.Config

	// CA is the authority of the Server's certificate, in PEM.
	CA []byte
}

// Cluster is what has metrics. Its methods are safe for concurrent use, and the objects
// that they return are not changed.
type Cluster interface {
	// Pods returns the Pods of a namespace, of all namespaces if it is "", whose Nodes
	// answer.
	Pods(namespace string) []*corev1.Pod

	// Nodes returns the Nodes that answer.
	Nodes() []*corev1.Node
}

// Options configures a Server. All but OnReady and Logger are needed.
type Options struct {
	// Config reaches the API server. Its user may write Services of kube-system and
	// APIServices, and may read all objects that custom and external metrics are
	// about. It is copied.
	Config *rest.Config

	Serving Serving
	Cluster Cluster

	// OnReady is called once, from another goroutine, when discovery has the three
	// APIs and they answer, or when they did not within ten seconds. It may be nil.
	OnReady func()

	// Logger logs what is wrong; nil is slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.OnReady == nil {
		o.OnReady = func() {}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	switch {
	case o.Config == nil:
		return o, errors.New("options of the metrics: no Config: say how the API server is reached")
	case o.Cluster == nil:
		return o, errors.New("options of the metrics: no Cluster: say what has metrics")
	case o.Serving.TLS == nil || o.Serving.TLS.ClientAuth != tls.RequireAndVerifyClientCert:
		return o, errors.New("options of the metrics: Serving lets every client connect: its ClientAuth has to be RequireAndVerifyClientCert")
	}
	return o, nil
}
