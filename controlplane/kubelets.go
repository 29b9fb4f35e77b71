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

	"github.com/setpoint-io/setpoint/controlplane/metrics"
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

	// frontProxyClient is the base name of the files with the certificate that API
	// servers show to aggregated API servers, and its user (kubeadm's
	// FrontProxyClientCertAndKeyBaseName and ...CertCommonName).
	frontProxyClient = "front-proxy-client"

	// metricsServerUser is the subject of the certificate of the server of metrics.
	metricsServerUser = "setpoint-metrics"
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
	return cp.pki.behindAPIServer(x509.Certificate{
		Subject:     pkix.Name{CommonName: nodeServerUser},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, cp.pki.cluster, kubeletClient)
}

// MetricsServing returns how the metrics of simulated nodes are served, for
// Options.Metrics of package nodes. As with NodeServing, the server accepts the API
// servers of this control plane alone, here by the certificate that they show to
// aggregated API servers. The caller owns the result.
func (cp *ControlPlane) MetricsServing() (*metrics.Serving, error) {
	config, err := cp.pki.behindAPIServer(x509.Certificate{
		Subject:  pkix.Name{CommonName: metricsServerUser},
		DNSNames: []string{metrics.ServerName},
	}, cp.pki.frontProxy, frontProxyClient)
	if err != nil {
		return nil, err
	}
	return &metrics.Serving{TLS: config, CA: cp.pki.cluster.certPEM}, nil
}

// behindAPIServer returns the TLS configuration of a server that API servers alone may
// call: it has a certificate after the template, of the cluster's authority, and accepts
// the one client certificate that is in the files with the base name client, which
// clientAuthority has signed.
func (p *pki) behindAPIServer(template x509.Certificate, clientAuthority *authority, client string) (*tls.Config, error) {
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	pair, err := p.issue(p.cluster, template)
	if err != nil {
		return nil, err
	}
	serving, err := tls.X509KeyPair(pair.certPEM, pair.keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of %s: %w", template.Subject.CommonName, err)
	}
	allowed, err := tls.LoadX509KeyPair(p.certFile(client), p.keyFile(client))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate that API servers show to %s: %w", template.Subject.CommonName, err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(clientAuthority.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{serving},
		ClientCAs:    clients,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
		VerifyConnection: func(c tls.ConnectionState) error {
			if !bytes.Equal(c.PeerCertificates[0].Raw, allowed.Certificate[0]) {
				return errNotAPIServer
			}
			return nil
		},
	}, nil
}

var errNotAPIServer = errors.New("this server answers the API servers of its own control plane alone")
