// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
)

// Options say how a [Server] serves. The zero value is TLS with a certificate that the server
// makes, and pages that a user of the cluster sees with a bearer token; it needs Config.
type Options struct {
	// Config is how to reach the API server that authenticates and authorizes the users. It is
	// ignored where Plain is set.
	Config *rest.Config
	// ClientOptions are those of the clients that Config is for.
	ClientOptions []client.Option
	// Log is the logger of the server. nil is slog.Default.
	Log *slog.Logger

	// Plain is HTTP without TLS, open to every client that can reach it. The listener must be on
	// a loopback address.
	Plain bool
	// CertFile and KeyFile are read again, once a second at most, and so may be replaced.
	// Without them the server makes a certificate, which is valid for a year.
	CertFile, KeyFile string
	// CertDir is a folder in which the server keeps the certificate that it makes, in the files
	// kube-controller-manager.crt and kube-controller-manager.key.
	CertDir string
	// TLS says how connections are encrypted.
	TLS TLS
	// Profiling adds /debug/pprof/.
	Profiling bool
	// OpenPaths are the paths that need no rights; a star at the end stands for any rest.
	// nil is the pages of health, with all below them. It is ignored where Plain is set.
	OpenPaths []string
	// Authentication says how the server knows users that send no token. It is ignored where
	// Plain is set.
	Authentication Authentication
}
