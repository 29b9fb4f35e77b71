// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"

	corev1 "k8s.io/api/core/v1"
)

const (
	// kubeletClient is the base name of the files with the certificate that API
	// servers show to kubelets, and kubeletClientUser its user: both are kubeadm's
	// (APIServerKubeletClientCertAndKeyBaseName and ...CertCommonName in
	// cmd/kubeadm/app/constants, v1.37).
	kubeletClient     = "apiserver-kubelet-client"
	kubeletClientUser = "kube-apiserver-kubelet-client"

	// nodeServerUser is the subject of the certificate of the simulated nodes'
	// server. Kubelets are called system:node:NAME; this one serves all Nodes.
	nodeServerUser = "setpoint-nodes"
)

// kubeletAddresses is the order in which an API server tries the addresses of a
// Node. The server of simulated Nodes is their InternalDNS; the order of the others
// is kubeadm's (kubelet-preferred-address-types, v1.37).
var kubeletAddresses = []string{
	string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP), string(corev1.NodeExternalIP), string(corev1.NodeHostName),
}

// NodeServing returns the TLS configuration of the server of simulated nodes, for
// Options.Serving of package nodes: a certificate for 127.0.0.1 that the API servers
// trust. The server accepts the API servers of this control plane, and no other
// client, whatever certificate it has. The caller owns the result.
func (cp *ControlPlane) NodeServing() (*tls.Config, error) {
	pair, err := cp.pki.issue(cp.pki.cluster, x509.Certificate{
		Subject:     pkix.Name{CommonName: nodeServerUser},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
	if err != nil {
		return nil, err
	}
	serving, err := tls.X509KeyPair(pair.certPEM, pair.keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of the simulated nodes: %w", err)
	}
	client, err := tls.LoadX509KeyPair(cp.pki.certFile(kubeletClient), cp.pki.keyFile(kubeletClient))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate that API servers show to kubelets: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(cp.pki.cluster.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{serving},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
		VerifyConnection: func(c tls.ConnectionState) error {
			if !bytes.Equal(c.PeerCertificates[0].Raw, client.Certificate[0]) {
				return errNotAPIServer
			}
			return nil
		},
	}, nil
}

var errNotAPIServer = errors.New("the simulated nodes answer the API servers of their own control plane alone")
